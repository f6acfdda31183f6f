import { asError } from '../../lib/thrown.ts';
import { claimingKey } from '../../plan/claim.ts';
import type { ServicePlan } from '../../plan/service-plan.ts';
import { Claims } from '../claims.ts';
import type { Bytes } from './bytes.ts';
import { type Emit, elementsOf } from './compile.ts';
import { describeFrontend } from './describe.ts';
import { ElementDiff, type ElementSink } from './element-diff.ts';
import { claimOf, clusterAddressOf, type Frontend, frontendsOf, hairpinsOf } from './frontends.ts';
import { HandlerNumbers } from './handler-numbers.ts';
import type { SetName } from './layout.ts';
import { type EarlierPlacement, nowhere, type Placement, place } from './placement.ts';
import type { NftablesSettings } from './settings.ts';
import { SharedKeys } from './shared-keys.ts';
import { StickyNumbers } from './sticky-numbers.ts';

/** Sets whose elements several services may need alike. */
type SharedSet = 'cluster-addresses' | 'hairpins';

const sharedKeysOf: Readonly<Record<SharedSet, (plan: ServicePlan) => Bytes[]>> = {
  'cluster-addresses': clusterAddressOf,
  hairpins: hairpinsOf,
};

const sharedSets = Object.keys(sharedKeysOf) as SharedSet[];

/** Tells how a service port was placed before; `frontends` are those that it has. */
export type EarlierOf = (plan: ServicePlan, frontends: readonly Frontend[]) => EarlierPlacement;

/** Service ports whose elements change together, before and after. */
export interface Change {
  readonly before: readonly Placement[];
  readonly after: readonly Placement[];
  /** Keys of shared sets that may have come or gone, and whether each was there before. */
  readonly shared: Readonly<Record<SharedSet, ReadonlyMap<Bytes, boolean>>>;
  /** Service ports that cannot be placed. */
  readonly failures: readonly { readonly key: string; readonly error: Error }[];
}

/**
 * What the kernel is believed to hold: how every service port is placed. Elements follow from placements, so none
 * is kept; a million of them cost what their endpoints' addresses cost. Valid only as long as every change that
 * was taken from it reached the kernel.
 */
export class Shadow {
  readonly #settings: NftablesSettings;
  readonly #numbers: StickyNumbers;
  readonly #handlers: HandlerNumbers;
  readonly #placements = new Map<string, Placement>();
  readonly #claims = new Claims();
  /** Service ports that another one took a frontend from. */
  readonly #losers = new Set<string>();
  readonly #shared: Record<SharedSet, SharedKeys> = {
    'cluster-addresses': new SharedKeys(),
    hairpins: new SharedKeys(),
  };

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

  placements(): Iterable<Placement> {
    return this.#placements.values();
  }

  /** The elements that a placed service port has to itself. */
  elementsOf(placement: Placement, emit: Emit): void {
    elementsOf(placement, this.#settings, this.#handlers, emit);
  }

  /**
   * Moves on to the given plans of the given keys; a key without a plan leaves. Others come along when a frontend
   * passes between services. `earlierOf` tells of placements from before this shadow, at a key's first appearance.
   */
  update(
    keys: Iterable<string>,
    plans: ReadonlyMap<string, ServicePlan>,
    earlierOf: EarlierOf = () => nowhere,
  ): Change {
    const wanted = new Map<string, ServicePlan | undefined>();
    for (const key of keys) wanted.set(key, plans.get(key));
    for (const key of this.#reassign(wanted)) wanted.set(key, this.#placements.get(key)?.plan);
    const before = [...wanted.keys()].flatMap((key) => this.#placements.get(key) ?? []);
    const shared = this.#updateShared(wanted);
    const after: Placement[] = [];
    const failures: { key: string; error: Error }[] = [];
    for (const [key, plan] of wanted) {
      const earlier = this.#placements.get(key);
      this.#losers.delete(key);
      const placement =
        plan &&
        this.#place(plan, earlier ? () => earlier : earlierOf, (error) => {
          failures.push({ key, error });
        });
      this.#replace(key, placement);
      if (placement) after.push(placement);
    }
    return { before, after, shared, failures };
  }

  /** Keys whose plan is another one than was placed, or no longer there. */
  outdated(plans: ReadonlyMap<string, ServicePlan>): Set<string> {
    const keys = [...plans.keys()].filter((key) => this.#placements.get(key)?.plan !== plans.get(key));
    for (const key of this.#placements.keys()) if (!plans.has(key)) keys.push(key);
    return new Set(keys);
  }

  /** Service ports that lack a frontend because another service port has it. */
  *conflicts(): Generator<{ readonly key: string; readonly error: Error }> {
    for (const key of this.#losers) {
      const plan = this.#placements.get(key)?.plan;
      const lost = plan ? frontendsOf(plan).filter((frontend) => !this.#owns(plan, frontend)) : [];
      const texts = lost.map((frontend) => {
        const winner = claimingKey(this.#claims.first(frontend.key) ?? '');
        return `${describeFrontend(this.#settings.family, frontend)} belongs to service port ${winner}`;
      });
      yield { key, error: new Error(texts.join(', ')) };
    }
  }

  /** The elements that service ports share; those of their own follow from placements. */
  *sharedElements(): Generator<readonly [set: SetName, key: Bytes]> {
    for (const set of sharedSets) for (const key of this.#shared[set].keys()) yield [set, key];
  }

  /** Passes on the element operations that a change amounts to. */
  diff(change: Change, sink: ElementSink): void {
    const diff = new ElementDiff(sink);
    for (const placement of change.before) {
      this.elementsOf(placement, (set, key, value) => diff.had(set, key, value));
    }
    for (const placement of change.after) {
      this.elementsOf(placement, (set, key, value) => diff.wants(set, key, value));
    }
    for (const set of sharedSets) {
      for (const [key, wasThere] of change.shared[set]) {
        if (wasThere) diff.had(set, key, '');
        if (this.#shared[set].has(key)) diff.wants(set, key, '');
      }
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

  /** Moves claims along; gives the service ports besides the given ones that win or lose a frontend by it. */
  #reassign(wanted: ReadonlyMap<string, ServicePlan | undefined>): Set<string> {
    const owners = new Map<Bytes, string | undefined>();
    for (const [key, plan] of wanted) {
      const old = this.#placements.get(key)?.plan;
      for (const frontend of old ? frontendsOf(old) : []) {
        if (!owners.has(frontend.key)) owners.set(frontend.key, this.#claims.first(frontend.key));
        if (old) this.#claims.release(frontend.key, claimOf(old, frontend));
      }
      for (const frontend of plan ? frontendsOf(plan) : []) {
        if (!owners.has(frontend.key)) owners.set(frontend.key, this.#claims.first(frontend.key));
        if (plan) this.#claims.claim(frontend.key, claimOf(plan, frontend));
      }
    }
    const moved = [...owners].flatMap(([frontend, owner]) => {
      const now = this.#claims.first(frontend);
      return now === owner ? [] : [owner, now];
    });
    return new Set(
      moved.flatMap((claimant) => (claimant ? claimingKey(claimant) : [])).filter((key) => !wanted.has(key)),
    );
  }

  #updateShared(wanted: ReadonlyMap<string, ServicePlan | undefined>): Change['shared'] {
    const touched = { 'cluster-addresses': new Map<Bytes, boolean>(), hairpins: new Map<Bytes, boolean>() };
    for (const set of sharedSets) {
      const keys = this.#shared[set];
      const note = (key: Bytes): void => {
        if (!touched[set].has(key)) touched[set].set(key, keys.has(key));
      };
      for (const [name, plan] of wanted) {
        const old = this.#placements.get(name)?.plan;
        const [gone, come] = [old, plan].map((p) => (p ? sharedKeysOf[set](p) : []));
        for (const key of gone ?? []) {
          note(key);
          keys.remove(key);
        }
        for (const key of come ?? []) {
          note(key);
          keys.add(key);
        }
      }
    }
    return touched;
  }

  /** A plan that cannot be placed is kept without frontends: its cluster address then rejects. */
  #place(plan: ServicePlan, earlierOf: EarlierOf, onFailure: (error: Error) => void): Placement {
    const claimed = frontendsOf(plan);
    const owned = claimed.filter((frontend) => this.#owns(plan, frontend));
    if (owned.length < claimed.length) this.#losers.add(plan.port.key);
    try {
      return place(plan, owned, earlierOf(plan, owned), this.#numbers);
    } catch (error) {
      onFailure(asError(error));
      return { plan, frontends: [], cluster: [], local: [] };
    }
  }

  #owns(plan: ServicePlan, frontend: Frontend): boolean {
    return this.#claims.first(frontend.key) === claimOf(plan, frontend);
  }

  #replace(key: string, placement: Placement | undefined): void {
    const old = this.#placements.get(key)?.sticky?.service;
    if (old !== undefined && old !== placement?.sticky?.service) this.#numbers.release(old);
    if (placement) this.#placements.set(key, placement);
    else this.#placements.delete(key);
  }
}
