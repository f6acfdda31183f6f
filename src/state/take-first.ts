/** Removes and yields up to `limit` entries of a map, oldest first. */
export function* takeFirst<K, V>(map: Map<K, V>, limit: number): Iterable<[K, V]> {
  let left = limit;
  for (const entry of map) {
    if (left-- <= 0) return;
    map.delete(entry[0]);
    yield entry;
  }
}
