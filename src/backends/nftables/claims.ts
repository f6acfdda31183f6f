import type { Bytes } from './bytes.ts';

/**
 * Who a frontend belongs to. Two services may claim one address and port; a map holds it once. A cluster IP
 * outranks an external address, and among equals the smaller service port key wins, so that the outcome does not
 * depend on the order of events.
 */
export class Claims {
  /** A single claimant as it is, several as a sorted list. */
  readonly #claimants = new Map<Bytes, string | readonly string[]>();

  claim(frontend: Bytes, claimant: string): void {
    const others = this.#others(frontend, claimant);
    this.#claimants.set(frontend, others.length === 0 ? claimant : [...others, claimant].sort());
  }

  release(frontend: Bytes, claimant: string): void {
    const others = this.#others(frontend, claimant);
    if (others.length === 0) this.#claimants.delete(frontend);
    else this.#claimants.set(frontend, others.length === 1 ? (others[0] ?? '') : others);
  }

  owner(frontend: Bytes): string | undefined {
    const claimants = this.#claimants.get(frontend);
    return typeof claimants === 'string' ? claimants : claimants?.[0];
  }

  #others(frontend: Bytes, claimant: string): string[] {
    return [this.#claimants.get(frontend) ?? []].flat().filter((other) => other !== claimant);
  }
}

/** Keys that several services need alike: there while anybody needs them. */
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
