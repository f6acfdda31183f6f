/**
 * Who wants a thing that the kernel holds once. Owners are sorted, so that the first of them, and with it every
 * outcome, does not depend on the order of events.
 */
export class Owners {
  /** A single owner as it is, several as a sorted list. */
  readonly #owners = new Map<string, string | readonly string[]>();

  /** How many things are wanted. */
  get size(): number {
    return this.#owners.size;
  }

  has(thing: string): boolean {
    return this.#owners.has(thing);
  }

  things(): Iterable<string> {
    return this.#owners.keys();
  }

  of(thing: string): readonly string[] {
    const owners = this.#owners.get(thing);
    return typeof owners === 'string' ? [owners] : (owners ?? []);
  }

  first(thing: string): string | undefined {
    const owners = this.#owners.get(thing);
    return typeof owners === 'string' ? owners : owners?.[0];
  }

  /** Claiming twice is claiming once. */
  claim(thing: string, owner: string): void {
    const known = this.#owners.get(thing);
    if (known === undefined) this.#owners.set(thing, owner);
    else if (known !== owner) {
      const others = this.of(thing).filter((other) => other !== owner);
      this.#owners.set(thing, [...others, owner].sort());
    }
  }

  release(thing: string, owner: string): void {
    const known = this.#owners.get(thing);
    if (known === undefined) return;
    const [only, ...more] = this.of(thing).filter((other) => other !== owner);
    if (only === undefined) this.#owners.delete(thing);
    else this.#owners.set(thing, more.length === 0 ? only : [only, ...more]);
  }
}
