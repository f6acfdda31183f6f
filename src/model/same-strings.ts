/** Whether two lists hold equal strings in the same order; an absent list equals an empty one. */
export function sameStrings(a: readonly string[] | undefined, b: readonly string[] | undefined): boolean {
  if (a === b) return true;
  const length = a?.length ?? 0;
  if (length !== (b?.length ?? 0)) return false;
  for (let i = 0; i < length; i++) if (a?.[i] !== b?.[i]) return false;
  return true;
}
