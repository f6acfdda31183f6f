import { toIP } from '../../src/model/ip.ts';
import { stableSlot, stableTable } from '../../src/model/stable-table.ts';

/**
 * The name of the endpoint that a Service with the annotation `balance` sends a client to, on every node. `ids` are the
 * endpoints by name; without a port the address alone decides.
 */
export function chosenByTable(
  ids: Readonly<Record<string, string>>,
  client: string,
  port?: number,
): string | undefined {
  const sorted = Object.entries(ids).sort(([, a], [, b]) => (a < b ? -1 : 1));
  const table = stableTable(sorted.map(([, id]) => id));
  return sorted[table[stableSlot(toIP(client).bytes, port)] ?? -1]?.[0];
}
