/** Gives equal strings one identity, so that thousands of objects share one copy of a node or zone name. */
export type Intern = (text: string) => string;

export function createIntern(limit?: number): Intern {
  const interner = new Interner(limit);
  return (text) => interner.intern(text);
}

/**
 * Remembers at most `limit` strings. It keeps two generations: what has not been asked for while a whole
 * generation filled up is forgotten, so a stream of unique strings cannot grow it.
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

  /** Strings held, counting one that moved between generations twice. */
  get size(): number {
    return this.#young.size + this.#old.size;
  }
}
