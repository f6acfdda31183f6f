import type { FamilyLook } from '../inspect/api.ts';

/** What could not be read of which family, one line per reason. */
export function errorLines(families: readonly FamilyLook[]): string[] {
  const failed = families.filter(({ error }) => error !== null);
  const reasons = new Set(failed.map(({ error }) => error));
  return [...reasons].map((reason) => {
    const names = failed.filter(({ error }) => error === reason).map(({ family }) => family);
    return names.length === families.length ? `${reason}` : `${names.join(', ')}: ${reason}`;
  });
}

/** Throws the reason when there is nothing, because no family could be read. */
export function requireLook(families: readonly FamilyLook[], items: readonly unknown[]): void {
  if (items.length > 0 || families.some(({ error }) => error === null)) return;
  throw new Error(errorLines(families).join('; '));
}
