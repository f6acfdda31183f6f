import type { SavedTables } from '../../src/backends/iptables/compare.ts';
import { SavedTable } from '../../src/kernel/iptables/saved-table.ts';
import type { Family } from '../../src/model/ip.ts';
import type { RecordedCluster } from '../plan/recorded-cluster.ts';

type Expected = Readonly<Record<string, readonly string[]>>;

/** The tables of one family that upstream wrote for a recorded cluster, except for lines that `leaveOut` names. */
export function recordedTables(
  cluster: RecordedCluster,
  family: Family,
  leaveOut: (table: string, line: string) => boolean = () => false,
): SavedTables {
  const expect: Expected = cluster.expect;
  const read = (name: string) => {
    const table = new SavedTable(name);
    for (const line of expect[`${name}${family === 'IPv4' ? 4 : 6}`] ?? []) {
      if (!leaveOut(name, line)) table.take(line);
    }
    return table;
  };
  return { nat: read('nat'), filter: read('filter'), mangle: read('mangle') };
}
