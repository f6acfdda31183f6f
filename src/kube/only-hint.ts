/** More zones than a cluster has; a node may be a hint, too. */
const limit = 1_024;
const lists = new Map<string, readonly string[]>();

/**
 * A list of one hint, shared by all endpoints that have only this one: most have just the zone they are in, and a list
 * of its own for each would be a tenth of their memory.
 */
export function onlyHint(name: string): readonly string[] {
  const known = lists.get(name);
  if (known !== undefined) return known;
  if (lists.size >= limit) lists.clear();
  const list = [name];
  lists.set(name, list);
  return list;
}
