import type { Endpoint } from '../model/endpoint.ts';

/** Endpoints sorted byte-wise by id, no id twice. Ids are ASCII, so comparing UTF-16 units compares bytes. */
export type SortedEndpoints = readonly Endpoint[];

export const noEndpoints: SortedEndpoints = [];

export function byId(a: Endpoint, b: Endpoint): number {
  return a.id < b.id ? -1 : a.id > b.id ? 1 : 0;
}

/**
 * Sorts and removes duplicates. Of several records with one id, the last that is not terminating wins; if all are
 * terminating, the first.
 */
export function sortUnique(records: readonly Endpoint[]): SortedEndpoints {
  const sorted = records.toSorted(byId);
  let kept = 0;
  for (const record of sorted) {
    const last = sorted[kept - 1];
    if (last?.id !== record.id) sorted[kept++] = record;
    else if (!record.terminating) sorted[kept - 1] = record;
  }
  sorted.length = kept;
  return sorted;
}

/** Merges lists; for duplicates `sortUnique` decides, in the order of the lists. */
export function mergeLists(lists: readonly SortedEndpoints[]): SortedEndpoints {
  const [first] = lists;
  if (!first) return noEndpoints;
  return lists.length === 1 ? first : sortUnique(lists.flat());
}

/** The endpoint of that id, found by bisection. */
export function findEndpoint(list: SortedEndpoints, id: string): Endpoint | undefined {
  const found = list[lowerBound(list, id)];
  return found?.id === id ? found : undefined;
}

/** With more edits than this, a merge is cheaper than splicing. */
const maxPatch = 256;

/**
 * Returns the list with some endpoints removed and others added, with far fewer comparisons than a merge. Returns
 * undefined when there are too many edits, or when an added id exists already: then a merge must decide which wins.
 */
export function patchList(
  list: SortedEndpoints,
  removed: readonly Endpoint[],
  added: readonly Endpoint[],
): SortedEndpoints | undefined {
  if (removed.length + added.length > maxPatch) return undefined;
  const patched = list.slice();
  for (const { id } of removed) {
    const at = lowerBound(patched, id);
    if (patched[at]?.id === id) patched.splice(at, 1);
  }
  for (const endpoint of added) {
    const at = lowerBound(patched, endpoint.id);
    if (patched[at]?.id === endpoint.id) return undefined;
    patched.splice(at, 0, endpoint);
  }
  return patched;
}

/** Index of the first member whose id is not less. */
function lowerBound(list: SortedEndpoints, id: string): number {
  let low = 0;
  let high = list.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    const candidate = list[middle];
    if (candidate && candidate.id < id) low = middle + 1;
    else high = middle;
  }
  return low;
}
