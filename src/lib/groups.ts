/** Cuts `items` into groups of `size`; the last group holds the rest. */
export function* inGroups<T>(items: Iterable<T>, size: number): Generator<readonly T[], void> {
  let group: T[] = [];
  for (const item of items) {
    group.push(item);
    if (group.length < size) continue;
    yield group;
    group = [];
  }
  if (group.length > 0) yield group;
}
