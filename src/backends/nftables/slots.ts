/**
 * Gives every wanted item a slot, 0 to n-1, moving as few as possible: what stays keeps its slot, what is new takes
 * the slots of what left, and the last ones move into holes that remain. `wanted` has no duplicates; `previous` is
 * the order of slots so far.
 */
export function assignSlots<T>(previous: readonly T[], wanted: readonly T[]): readonly T[] {
  if (isSame(previous, wanted)) return previous;
  const fresh = new Set(wanted);
  const slots = previous.map((item): T | undefined => (fresh.delete(item) ? item : undefined));
  const incoming = fresh.values();
  for (const [slot, item] of slots.entries()) {
    if (item === undefined) slots[slot] = incoming.next().value;
  }
  return closeHoles(slots).concat([...incoming]);
}

function closeHoles<T>(slots: readonly (T | undefined)[]): T[] {
  const closed: T[] = [];
  let end = slots.length;
  for (let slot = 0; slot < end; slot++) {
    let item = slots[slot];
    while (item === undefined && end > slot + 1) item = slots[--end];
    if (item !== undefined) closed.push(item);
  }
  return closed;
}

function isSame<T>(left: readonly T[], right: readonly T[]): boolean {
  return left.length === right.length && left.every((item, i) => item === right[i]);
}
