import type { Placement, Placements } from '../model/placement.ts';

/** Endpoints of one service port that are remembered. */
const maxSeen = 1_000;

/**
 * Tells where the endpoints of one service port run. It remembers those that it was asked for, because the end of a flow
 * is often reported after its endpoint is gone.
 */
export class SeenPlacements {
  readonly #read: (known: Placements | undefined) => Placements;
  #current: Placements | undefined;
  readonly #seen = new Map<string, Placement>();

  /** `read` returns `known` when that still holds. */
  constructor(read: (known: Placements | undefined) => Placements) {
    this.#read = read;
  }

  of(endpoint: string): Placement {
    this.#current = this.#read(this.#current);
    const placement = this.#current.byEndpoint.get(endpoint);
    if (!placement) return this.#seen.get(endpoint) ?? {};
    if (this.#seen.get(endpoint) !== placement) this.#remember(endpoint, placement);
    return placement;
  }

  #remember(endpoint: string, placement: Placement): void {
    this.#seen.delete(endpoint);
    this.#seen.set(endpoint, placement);
    const [oldest] = this.#seen.keys();
    if (this.#seen.size > maxSeen && oldest !== undefined) this.#seen.delete(oldest);
  }
}
