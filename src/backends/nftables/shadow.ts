import { asError } from '../../lib/thrown.ts';
import { distinctFrontends, type Frontend } from '../../plan/frontend.ts';
import type { ServicePlan } from '../../plan/service-plan.ts';
import type { Bytes } from './bytes.ts';
import { chainsOf, type Emit, elementsOf } from './compile.ts';
import type { ElementDiff } from './element-diff.ts';
import { clusterAddressOf, hairpinsOf } from './frontends.ts';
import { HandlerNumbers } from './handler-numbers.ts';
import type { SetName } from './layout.ts';
import { type EarlierPlacement, nowhere, type Placement, place } from './placement.ts';
import type { NftablesSettings } from './settings.ts';
import type { SharedChainName } from './shared-chains.ts';
import { SharedKeys } from './shared-keys.ts';
import { StickyNumbers } from './sticky-numbers.ts';

/** Sets whose elements several services may need alike. */
type SharedSet = 'cluster-addresses' | 'hairpins';

const sharedKeysOf: Readonly<Record<SharedSet, (plan: ServicePlan) => Bytes[]>> = {
  'cluster-addresses': clusterAddressOf,
  hairpins: hairpinsOf,
};

const sharedSets = Object.keys(sharedKeysOf) as SharedSet[];

/** Returns a service port's earlier placement; `frontends` are those that it has. */
export type EarlierOf = (plan: ServicePlan, frontends: readonly Frontend[]) => EarlierPlacement;

/** Service ports whose elements change together: what they were, and what they are. */
export class Change {
  readonly before: Placement[] = [];
  readonly after: Placement[] = [];
  /** Keys of shared sets that may have come or gone, and whether each was there before. */
  readonly shared: Readonly<Record<SharedSet, Map<Bytes, boolean>>> = {
    'cluster-addresses': new Map(),
    hairpins: new Map(),
  };
  /** Shared chains that the service ports need now. */
  readonly chains = new Set<SharedChainName>();
  /** Shared chains that no service port needs any more. */
  readonly released = new Set<SharedChainName>();
  /** Service ports that cannot be placed. */
  readonly failures: { readonly key: string; readonly error: Error }[] = [];
}

/**
 * What the kernel is believed to hold, as placements of service ports. Elements follow from placements, so none is
 * stored: a million of them cost no more than their endpoints' addresses. Valid only while every change taken from it
 * reaches the kernel.
 */
export class Shadow {
  readonly #settings: NftablesSettings;
  readonly #numbers: StickyNumbers;
  readonly #handlers: HandlerNumbers;
  readonly #placements = new Map<string, Placement>();
  readonly #shared: Record<SharedSet, SharedKeys> = {
    'cluster-addresses': new SharedKeys(),
    hairpins: new SharedKeys(),
  };
  /** The shared chains that service ports need, by name. */
  readonly #chains = new SharedKeys();

  constructor(settings: NftablesSettings, numbers = new StickyNumbers(), handlers = new HandlerNumbers()) {
    this.#settings = settings;
    this.#numbers = numbers;
    this.#handlers = handlers;
  }

  get settings(): NftablesSettings {
    return this.#settings;
  }

  /** The numbers of the chains that frontends name. */
  get handlers(): HandlerNumbers {
    return this.#handlers;
  }

  /** Whether a service port needs this shared chain, not counting chains that others lead to. */
  needsChain(name: SharedChainName): boolean {
    return this.#chains.has(name);
  }

  placements(): Iterable<Placement> {
    return this.#placements.values();
  }

  /** The elements that a placed service port has to itself. */
  elementsOf(placement: Placement, emit: Emit): void {
    elementsOf(placement, this.#settings, this.#handlers, emit);
  }

  /**
   * Replaces the placements of the given keys by their plans; a key without a plan is removed. Adds to `change` and
   * returns it. `earlierOf` gives the placement from before this shadow when a key first appears.
   */
  update(
    keys: Iterable<string>,
    plans: ReadonlyMap<string, ServicePlan>,
    change = new Change(),
    earlierOf: EarlierOf = () => nowhere,
  ): Change {
    for (const key of keys) {
      const plan = plans.get(key);
      const earlier = this.#placements.get(key);
      this.#updateShared(earlier?.plan, plan, change);
      const onFailure = (error: Error) => change.failures.push({ key, error });
      const placement = plan && this.#place(plan, earlier ? () => earlier : earlierOf, onFailure);
      this.#updateChains(earlier, placement, change);
      this.#replace(key, placement);
      if (earlier) change.before.push(earlier);
      if (placement) change.after.push(placement);
    }
    return change;
  }

  /** The elements that service ports share; those of their own follow from placements. */
  *sharedElements(): Generator<readonly [set: SetName, key: Bytes]> {
    for (const set of sharedSets) for (const key of this.#shared[set].keys()) yield [set, key];
  }

  /**
   * Passes on the element operations that a change amounts to: all that was before anything that is wanted, since a
   * frontend may pass from one service port to another. Yields after each service port, so that the caller can pause.
   */
  *diff(change: Change, diff: ElementDiff): Generator<void> {
    for (const placement of change.before) {
      this.elementsOf(placement, (set, key, value) => diff.had(set, key, value));
      yield;
    }
    for (const set of sharedSets) {
      for (const [key, wasThere] of change.shared[set]) if (wasThere) diff.had(set, key, '');
    }
    for (const placement of change.after) {
      this.elementsOf(placement, (set, key, value) => diff.wants(set, key, value));
      yield;
    }
    for (const set of sharedSets) {
      for (const key of change.shared[set].keys()) if (this.#shared[set].has(key)) diff.wants(set, key, '');
    }
    diff.finish();
  }

  /** The service ports that elements belong to, by key; those that several share belong to none. */
  ownersOf(set: SetName, keys: ReadonlySet<Bytes>): Map<Bytes, string> {
    const owners = new Map<Bytes, string>();
    for (const [name, placement] of this.#placements) {
      this.elementsOf(placement, (itsSet, itsKey) => {
        if (itsSet === set && keys.has(itsKey)) owners.set(itsKey, name);
      });
    }
    return owners;
  }

  #updateShared(old: ServicePlan | undefined, plan: ServicePlan | undefined, { shared }: Change): void {
    for (const set of sharedSets) {
      const keys = this.#shared[set];
      const note = (key: Bytes): void => {
        if (!shared[set].has(key)) shared[set].set(key, keys.has(key));
      };
      for (const key of old ? sharedKeysOf[set](old) : []) {
        note(key);
        keys.remove(key);
      }
      for (const key of plan ? sharedKeysOf[set](plan) : []) {
        note(key);
        keys.add(key);
      }
    }
  }

  #updateChains(
    old: Placement | undefined,
    placement: Placement | undefined,
    { chains, released }: Change,
  ): void {
    for (const name of placement ? chainsOf(placement, this.#settings) : []) {
      this.#chains.add(name);
      chains.add(name);
      released.delete(name);
    }
    for (const name of old ? chainsOf(old, this.#settings) : []) {
      this.#chains.remove(name);
      if (!this.#chains.has(name)) released.add(name);
    }
  }

  /** A plan that cannot be placed is kept without frontends: its cluster address then rejects. */
  #place(plan: ServicePlan, earlierOf: EarlierOf, onFailure: (error: Error) => void): Placement {
    const frontends = distinctFrontends(plan);
    try {
      return place(plan, frontends, earlierOf(plan, frontends), this.#numbers);
    } catch (error) {
      onFailure(asError(error));
      return { plan, frontends: [], cluster: [], local: [] };
    }
  }

  #replace(key: string, placement: Placement | undefined): void {
    const old = this.#placements.get(key)?.sticky?.service;
    if (old !== undefined && old !== placement?.sticky?.service) this.#numbers.release(old);
    if (placement) this.#placements.set(key, placement);
    else this.#placements.delete(key);
  }
}
