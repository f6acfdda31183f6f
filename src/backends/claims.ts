/**
 * The service ports that want something that the kernel holds once. They are sorted, so that the first does not
 * depend on the order of events.
 */
export class Claims {
  /** One claimant, or a sorted list of several. */
  readonly #claims = new Map<string, string | readonly string[]>();

  /** How many things are claimed. */
  get size(): number {
    return this.#claims.size;
  }

  has(thing: string): boolean {
    return this.#claims.has(thing);
  }

  things(): Iterable<string> {
    return this.#claims.keys();
  }

  of(thing: string): readonly string[] {
    const claims = this.#claims.get(thing);
    return typeof claims === 'string' ? [claims] : (claims ?? []);
  }

  first(thing: string): string | undefined {
    const claims = this.#claims.get(thing);
    return typeof claims === 'string' ? claims : claims?.[0];
  }

  /** Claiming twice is claiming once. */
  claim(thing: string, claimant: string): void {
    const known = this.#claims.get(thing);
    if (known === undefined) this.#claims.set(thing, claimant);
    else if (known !== claimant) {
      const others = this.of(thing).filter((other) => other !== claimant);
      this.#claims.set(thing, [...others, claimant].sort());
    }
  }

  release(thing: string, claimant: string): void {
    const known = this.#claims.get(thing);
    if (known === undefined) return;
    const [only, ...more] = this.of(thing).filter((other) => other !== claimant);
    if (only === undefined) this.#claims.delete(thing);
    else this.#claims.set(thing, more.length === 0 ? only : [only, ...more]);
  }
}
