import { toIP } from '../model/ip.ts';
import type { Balance } from '../model/service-port.ts';
import { stableSlot, stableTable } from '../model/stable-table.ts';
import type { EndpointList, ServicePlan } from './service-plan.ts';

/**
 * The part of a client's new connections that each of these endpoints gets: all of them or none when its address decides.
 * Without a client, the part of those of all clients. `ids` are sorted.
 */
export function sharesOf(ids: readonly string[], balance: Balance, client?: string): number[] {
  if (balance === 'default' || ids.length === 0) return ids.map(() => 1 / ids.length);
  const table = stableTable(ids);
  if (balance === 'hash-client' && client !== undefined) {
    const chosen = table[stableSlot(toIP(client).bytes)];
    return ids.map((_, index) => (index === chosen ? 1 : 0));
  }
  const slots = ids.map(() => 0);
  for (const index of table) slots[index] = (slots[index] ?? 0) + 1;
  return slots.map((count) => count / table.length);
}

/** The part of the new connections of all clients that each endpoint of one of the plan's lists gets, by id. */
export function listShares(
  plan: Pick<ServicePlan, EndpointList>,
  list: EndpointList,
  balance: Balance,
): ReadonlyMap<string, number> {
  const ids = plan[list].map(({ id }) => id);
  const shares = sharesOf(ids, balance);
  return new Map(ids.map((id, index) => [id, shares[index] ?? 0]));
}
