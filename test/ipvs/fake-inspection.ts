import { IpvsInspection } from '../../src/backends/ipvs/inspection.ts';
import type { IpvsSettings } from '../../src/backends/ipvs/settings.ts';
import { comment, type JumpTable, savedRule } from '../../src/backends/jumps.ts';
import type { AnyTable } from '../../src/kernel/iptables/commands.ts';
import { SavedTable } from '../../src/kernel/iptables/saved-table.ts';
import { FakeClock } from '../fake-clock.ts';
import type { FakeKernel } from './fake-kernel.ts';

/** Inspects a kernel in memory. `tampered` are rules that replace the written ones. */
export function inspectionOf(
  fake: FakeKernel,
  settings: IpvsSettings,
  { rules = fake.rules } = {},
): IpvsInspection {
  return new IpvsInspection({
    settings,
    kernel: { ...fake.kernel, close: () => {} },
    tables: { read: async (table) => tableOf(fake, rules, table) },
    files: {
      read: () => {
        throw new Error('no such file');
      },
      write: () => {},
    },
    clock: new FakeClock(),
  });
}

function tableOf(fake: FakeKernel, rules: string, name: AnyTable): SavedTable {
  const table = new SavedTable(name);
  const lines = rules.split('\n');
  const start = lines.indexOf(`*${name}`);
  if (start >= 0) for (const line of lines.slice(start, lines.indexOf('COMMIT', start))) table.take(line);
  for (const jump of fake.jumps) {
    const [, on = '', from = '', to = '', text = ''] = /^(\S+) (\S+) (\S+) (.*)$/.exec(jump) ?? [];
    if (on === name) table.take(savedRule({ table: on as JumpTable, from, to, match: comment(text) }));
  }
  return table;
}
