import type { FamilyLook } from '../inspect/api.ts';
import type { TrafficLook } from '../inspect/traffic-api.ts';
import type { Family } from '../model/ip.ts';

/** What could not be read of which family, one line per reason. */
export function errorLines(families: readonly FamilyLook[]): string[] {
  return reasonLines(families.map(({ family, error }) => ({ family, reason: error })));
}

/** What is not counted in which family, one line per reason. A proxy of an earlier version does not tell. */
export function warningLines(families: readonly Partial<TrafficLook>[]): string[] {
  return reasonLines(families.map(({ family, warning }) => ({ family, reason: warning ?? null })));
}

function reasonLines(
  looks: readonly { readonly family: Family | undefined; readonly reason: string | null }[],
): string[] {
  const groups = Map.groupBy(
    looks.filter(({ reason }) => reason !== null),
    ({ reason }) => reason,
  );
  return [...groups].map(([reason, group]) => {
    const names = group.map(({ family }) => family);
    return names.length === looks.length ? `${reason}` : `${names.join(', ')}: ${reason}`;
  });
}

/** Throws the reason when there is nothing, because no family could be read. */
export function requireLook(families: readonly FamilyLook[], items: readonly unknown[]): void {
  if (items.length > 0 || families.some(({ error }) => error === null)) return;
  throw new Error(errorLines(families).join('; '));
}
