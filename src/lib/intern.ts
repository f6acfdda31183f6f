/** Returns one shared copy of equal strings, such as node and zone names of thousands of objects. */
export type Intern = (text: string) => string;

export function createIntern(limit?: number): Intern {
  const interner = new Interner(limit);
  return (text) => interner.intern(text);
}

/**
 * Remembers at most `limit` strings, in two generations. A string that is not used while a whole generation fills up is
 * forgotten, so that a stream of unique strings cannot grow it.
 */
export class Interner {
  readonly #generation: number;
  #young = new Map<string, string>();
  #old = new Map<string, string>();

  constructor(limit = 65_536) {
    this.#generation = Math.max(1, Math.floor(limit / 2));
  }

  intern(text: string): string {
    const known = this.#young.get(text);
    if (known !== undefined) return known;
    const kept = this.#old.get(text) ?? text;
    if (this.#young.size >= this.#generation) {
      this.#old = this.#young;
      this.#young = new Map();
    }
    this.#young.set(kept, kept);
    return kept;
  }

  knows(text: string): boolean {
    return this.#young.has(text) || this.#old.has(text);
  }

  /** Number of strings held; one in both generations counts twice. */
  get size(): number {
    return this.#young.size + this.#old.size;
  }
}
