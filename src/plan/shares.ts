import type { Endpoint } from '../model/endpoint.ts';
import { toIP } from '../model/ip.ts';
import type { Balance } from '../model/service-port.ts';
import { stableSlot, stableTable } from './stable-table.ts';

/** The part of a client's new connections that each endpoint gets: all of them or none when its address decides. */
export function sharesOf(endpoints: readonly Endpoint[], balance: Balance, client: string): number[] {
  if (balance === 'default') return endpoints.map(() => 1 / endpoints.length);
  const table = stableTable(endpoints.map(({ id }) => id));
  const chosen = balance === 'hash-client' ? table[stableSlot(toIP(client).bytes)] : undefined;
  if (chosen !== undefined) return endpoints.map((_, index) => (index === chosen ? 1 : 0));
  const slots = endpoints.map(() => 0);
  for (const index of table) slots[index] = (slots[index] ?? 0) + 1;
  return slots.map((count) => count / table.length);
}
