import type { Bytes } from './bytes.ts';

/** Counts users of keys or names that several services share; each exists while it has a user. */
export class SharedKeys {
  readonly #counts = new Map<Bytes, number>();

  add(key: Bytes): void {
    this.#counts.set(key, (this.#counts.get(key) ?? 0) + 1);
  }

  remove(key: Bytes): void {
    const count = (this.#counts.get(key) ?? 0) - 1;
    if (count > 0) this.#counts.set(key, count);
    else this.#counts.delete(key);
  }

  has(key: Bytes): boolean {
    return this.#counts.has(key);
  }

  keys(): Iterable<Bytes> {
    return this.#counts.keys();
  }
}
