/**
 * Who has a frontend. Two service ports may ask for the same one; who has it keeps it, the other one waits. Without
 * that, traffic would move whenever a second service is made by mistake.
 */
export class Holders {
  readonly #owners = new Map<string, string>();
  readonly #owned = new Map<string, Set<string>>();

  /** True when the key has the name now. */
  claim(name: string, key: string): boolean {
    const owner = this.#owners.get(name);
    if (owner !== undefined) return owner === key;
    this.#owners.set(name, key);
    const owned = this.#owned.get(key) ?? new Set();
    this.#owned.set(key, owned.add(name));
    return true;
  }

  /** The same state, to try something out with. */
  copy(): Holders {
    const copy = new Holders();
    for (const [name, key] of this.#owners) copy.claim(name, key);
    return copy;
  }

  owner(name: string): string | undefined {
    return this.#owners.get(name);
  }

  /** Everybody who has something. */
  keys(): Iterable<string> {
    return this.#owned.keys();
  }

  /** Gives up every name of the key that is not among these. */
  retain(key: string, names: ReadonlySet<string>): void {
    const owned = this.#owned.get(key);
    if (!owned) return;
    for (const name of owned) {
      if (names.has(name)) continue;
      owned.delete(name);
      this.#owners.delete(name);
    }
    if (owned.size === 0) this.#owned.delete(key);
  }
}
