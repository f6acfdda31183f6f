interface Entry<K, V> {
  readonly key: K;
  value: V;
  older: Entry<K, V> | undefined;
  newer: Entry<K, V> | undefined;
}

/**
 * A map ordered by when each entry was last set. Above `max` entries, a new one replaces the oldest.
 * The order is a linked list because a plain Map with many deletions is slow to iterate from the start (a new iterator
 * steps over every deleted slot), and an iterator that is kept retains every table that the Map has outgrown.
 */
export class RecentMap<K, V> {
  readonly #max: number;
  readonly #entries = new Map<K, Entry<K, V>>();
  #oldest: Entry<K, V> | undefined;
  #newest: Entry<K, V> | undefined;

  constructor(max = Number.POSITIVE_INFINITY) {
    this.#max = max;
  }

  get size(): number {
    return this.#entries.size;
  }

  get(key: K): V | undefined {
    return this.#entries.get(key)?.value;
  }

  set(key: K, value: V): void {
    const known = this.#entries.get(key);
    if (known) {
      known.value = value;
      this.#unlink(known);
      this.#append(known);
      return;
    }
    if (this.#entries.size >= this.#max) this.dropOldest();
    const entry = { key, value, older: undefined, newer: undefined };
    this.#entries.set(key, entry);
    this.#append(entry);
  }

  delete(key: K): void {
    const entry = this.#entries.get(key);
    if (!entry) return;
    this.#entries.delete(key);
    this.#unlink(entry);
  }

  /** Removes the oldest entry and returns its value. */
  dropOldest(): V | undefined {
    const oldest = this.#oldest;
    if (oldest) this.delete(oldest.key);
    return oldest?.value;
  }

  clear(): void {
    this.#entries.clear();
    this.#oldest = undefined;
    this.#newest = undefined;
  }

  /** Oldest first. The loop may delete the current entry. */
  *[Symbol.iterator](): Generator<[K, V]> {
    for (let entry = this.#oldest; entry; entry = entry.newer) yield [entry.key, entry.value];
  }

  /** The loop must not change the map. */
  *newestFirst(): Generator<[K, V]> {
    for (let entry = this.#newest; entry; entry = entry.older) yield [entry.key, entry.value];
  }

  #append(entry: Entry<K, V>): void {
    entry.older = this.#newest;
    entry.newer = undefined;
    if (this.#newest) this.#newest.newer = entry;
    else this.#oldest = entry;
    this.#newest = entry;
  }

  /** Keeps the entry's own links, so that an iterator that stands on it can go on. */
  #unlink({ older, newer }: Entry<K, V>): void {
    if (older) older.newer = newer;
    else this.#oldest = newer;
    if (newer) newer.older = older;
    else this.#newest = older;
  }
}
