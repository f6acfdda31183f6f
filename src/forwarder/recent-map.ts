/** A map of so many entries at most: the one that was set longest ago gives way to a new one. */
export class RecentMap<K, V> {
  readonly #max: number;
  /** In the order in which they were set. */
  readonly #entries = new Map<K, V>();
  /** Kept from one removal to the next: a new iterator would step over every place that was left since the beginning. */
  #oldest: Iterator<K> = this.#entries.keys();

  constructor(max: number) {
    this.#max = max;
  }

  get size(): number {
    return this.#entries.size;
  }

  get(key: K): V | undefined {
    return this.#entries.get(key);
  }

  set(key: K, value: V): void {
    this.#entries.delete(key);
    if (this.#entries.size >= this.#max) this.#dropOldest();
    this.#entries.set(key, value);
  }

  delete(key: K): void {
    this.#entries.delete(key);
  }

  clear(): void {
    this.#entries.clear();
  }

  [Symbol.iterator](): Iterator<[K, V]> {
    return this.#entries[Symbol.iterator]();
  }

  /** Everything before the iterator has been removed, or set again behind it. */
  #dropOldest(): void {
    let next = this.#oldest.next();
    if (next.done) {
      this.#oldest = this.#entries.keys();
      next = this.#oldest.next();
    }
    if (!next.done) this.#entries.delete(next.value);
  }
}
