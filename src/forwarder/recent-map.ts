interface Entry<K, V> {
  readonly key: K;
  value: V;
  older: Entry<K, V> | undefined;
  newer: Entry<K, V> | undefined;
}

/**
 * A map in the order in which entries were set, also those that were set again; with a maximum, the oldest gives way
 * to a new one. Entries are linked: a Map knows that order, too, but a new iterator of it steps over all the places
 * that were left since the beginning, and one that is kept retains every table that the Map has outgrown.
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

  /** Removes the entry that was set longest ago, and gives its value. */
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

  /** The oldest first. The one at hand may be deleted meanwhile. */
  *[Symbol.iterator](): Generator<[K, V]> {
    for (let entry = this.#oldest; entry; entry = entry.newer) yield [entry.key, entry.value];
  }

  #append(entry: Entry<K, V>): void {
    entry.older = this.#newest;
    entry.newer = undefined;
    if (this.#newest) this.#newest.newer = entry;
    else this.#oldest = entry;
    this.#newest = entry;
  }

  /** The entry itself still leads on, for who is on the way. */
  #unlink({ older, newer }: Entry<K, V>): void {
    if (older) older.newer = newer;
    else this.#oldest = newer;
    if (newer) newer.older = older;
    else this.#newest = older;
  }
}
