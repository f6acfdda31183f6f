/**
 * Who has a frontend. Two service ports may ask for the same one; who has it keeps it, the other one waits. Without
 * that, traffic would move whenever a second service is made by mistake.
 */
export class Holders {
  readonly #holders = new Map<string, string>();
  readonly #held = new Map<string, Set<string>>();

  /** True when the key has the name now. */
  claim(name: string, key: string): boolean {
    const holder = this.#holders.get(name);
    if (holder !== undefined) return holder === key;
    this.#holders.set(name, key);
    const held = this.#held.get(key) ?? new Set();
    this.#held.set(key, held.add(name));
    return true;
  }

  /** The same state, to try something out with. */
  copy(): Holders {
    const copy = new Holders();
    for (const [name, key] of this.#holders) copy.claim(name, key);
    return copy;
  }

  holder(name: string): string | undefined {
    return this.#holders.get(name);
  }

  /** Everybody who has something. */
  keys(): Iterable<string> {
    return this.#held.keys();
  }

  /** Gives up every name of the key that is not among these. */
  retain(key: string, names: ReadonlySet<string>): void {
    const held = this.#held.get(key);
    if (!held) return;
    for (const name of held) {
      if (names.has(name)) continue;
      held.delete(name);
      this.#holders.delete(name);
    }
    if (held.size === 0) this.#held.delete(key);
  }
}
