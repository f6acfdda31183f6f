import type { Clock, Timer } from '../lib/clock.ts';
import type { ResourceName } from '../model/objects.ts';

/** How long ServiceCIDRs may come after the rest. An API server that has none, or a role without them, costs that. */
const SERVICE_CIDRS_LATE_MS = 1_000;

export interface FirstListsOptions {
  /** Without the ranges, the first sync after a restart would let packets pass that were dropped until then. */
  readonly usesServiceCIDRs: boolean;
  readonly clock: Clock;
  /** Called once, when nothing more is awaited. */
  readonly onComplete: () => void;
}

/** The lists that come before the first sync: Services and EndpointSlices, and ServiceCIDRs if they are in time. */
export class FirstLists {
  readonly #options: FirstListsOptions;
  readonly #awaited: Set<ResourceName>;
  #lateness: Timer | undefined;

  constructor(options: FirstListsOptions) {
    this.#options = options;
    this.#awaited = new Set(['services', 'endpointSlices']);
    if (options.usesServiceCIDRs) this.#awaited.add('serviceCIDRs');
  }

  get areComplete(): boolean {
    return this.#awaited.size === 0;
  }

  /** All objects of the first list of that resource have been delivered. */
  listed(resource: ResourceName): void {
    if (!this.#awaited.delete(resource)) return;
    this.#lateness?.cancel();
    if (this.areComplete) this.#options.onComplete();
    else if (this.#awaited.size === 1 && this.#awaited.has('serviceCIDRs')) {
      const { clock } = this.#options;
      this.#lateness = clock.setTimeout(() => this.listed('serviceCIDRs'), SERVICE_CIDRS_LATE_MS);
    }
  }

  close(): void {
    this.#lateness?.cancel();
  }
}
