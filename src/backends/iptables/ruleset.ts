import type { Clock } from '../../lib/clock.ts';
import { asError } from '../../lib/thrown.ts';
import { TimeSlice } from '../../lib/time-slice.ts';
import type { ServicePlan } from '../../plan/service-plan.ts';
import { chainOf, differingChains } from './chain-diff.ts';
import {
  type CompiledService,
  compareServices,
  compileService,
  type OwnChains,
  ownChains,
  type Variant,
} from './compile.ts';
import { CompiledServices } from './compiled-services.ts';
import type { IptablesSettings } from './settings.ts';

/** The chains that a change of service ports requires to be written. */
export interface ServiceChanges {
  readonly filter: Set<string>;
  readonly nat: Set<string>;
  readonly own: Map<string, OwnChains>;
}

/**
 * The rules that are wanted, and the service chains known to be in the kernel that no wanted rule uses. What the
 * kernel holds is what was wanted last, as long as every restore succeeded.
 */
export class Ruleset {
  /** Service ports that cannot be put into rules. */
  readonly failures = new Map<string, Error>();
  /** Chains left behind. Some may be gone already: removing them again does no harm. */
  readonly stale = new Set<string>();
  readonly #settings: IptablesSettings;
  readonly #clock: Clock;
  #services = new CompiledServices();

  constructor(settings: IptablesSettings, clock: Clock) {
    this.#settings = settings;
    this.#clock = clock;
  }

  get services(): CompiledServices {
    return this.#services;
  }

  /**
   * Makes these plans the wanted ones; resolves to the chains of all of them, in order. Reuses lines of unchanged
   * service ports.
   */
  async replace(plans: ReadonlyMap<string, ServicePlan>, variant: Variant): Promise<Map<string, OwnChains>> {
    const compiled: CompiledService[] = [];
    this.failures.clear();
    const timeSlice = new TimeSlice(this.#clock);
    for (const [key, plan] of plans) {
      if (timeSlice.isSpent) await timeSlice.yield();
      const service = this.#compile(key, plan, variant);
      if (service) compiled.push(service);
    }
    const before = this.#services;
    this.#services = new CompiledServices(compiled);
    await this.#leaveReplaced(before, timeSlice);
    const own = await this.#ownChains(timeSlice);
    for (const chains of own.values()) this.#use(chains);
    return own;
  }

  /** The chains of every service port, in order. */
  async #ownChains(timeSlice: TimeSlice): Promise<Map<string, OwnChains>> {
    const own = new Map<string, OwnChains>();
    for (const service of this.#services) {
      if (timeSlice.isSpent) await timeSlice.yield();
      own.set(service.key, ownChains(service, this.#settings));
    }
    return own;
  }

  /** Notes stale chains: those of `found`, all service chains in the kernel, that no service port uses. */
  learn(found: readonly string[], own: ReadonlyMap<string, OwnChains>): void {
    const used = new Set<string>();
    for (const { declared } of own.values()) for (const chain of declared) used.add(chain);
    for (const chain of found) if (!used.has(chain)) this.stale.add(chain);
  }

  /** Compiles the plans of the given keys; a key without a plan is removed. Returns the chains to write. */
  change(keys: Iterable<string>, plans: ReadonlyMap<string, ServicePlan>, variant: Variant): ServiceChanges {
    const changes: ServiceChanges = { filter: new Set(), nat: new Set(), own: new Map() };
    const changed: CompiledService[] = [];
    for (const key of keys) {
      const before = this.#services.get(key);
      const plan = plans.get(key);
      this.failures.delete(key);
      const after = plan && this.#compile(key, plan, variant);
      if (before === after) continue;
      this.#compare(before, after, changes);
      if (after) {
        this.#services.set(after);
        changed.push(after);
      } else this.#services.delete(key);
    }
    return { ...changes, own: inOrder(changes.own, changed) };
  }

  /** Removes a service port from the wanted ones. */
  drop(key: string): void {
    const service = this.#services.get(key);
    if (service) this.#leave(ownChains(service, this.#settings));
    this.#services.delete(key);
  }

  async #leaveReplaced(before: CompiledServices, timeSlice: TimeSlice): Promise<void> {
    for (const service of before) {
      if (this.#services.get(service.key) === service) continue;
      if (timeSlice.isSpent) await timeSlice.yield();
      this.#leave(ownChains(service, this.#settings));
    }
  }

  #leave({ declared }: OwnChains): void {
    for (const chain of declared) this.stale.add(chain);
  }

  #use({ declared }: OwnChains): void {
    for (const chain of declared) this.stale.delete(chain);
  }

  #compile(key: string, plan: ServicePlan, variant: Variant): CompiledService | undefined {
    const known = this.#services.get(key);
    if (known?.plan === plan && sameVariant(known.variant, variant)) return known;
    try {
      return compileService(plan, this.#settings, variant);
    } catch (error) {
      this.failures.set(key, asError(error));
      return undefined;
    }
  }

  #compare(
    before: CompiledService | undefined,
    after: CompiledService | undefined,
    changes: ServiceChanges,
  ): void {
    for (const table of ['filter', 'nat'] as const) {
      const differing = differingChains(before?.dispatch[table] ?? [], after?.dispatch[table] ?? []);
      for (const chain of differing) changes[table].add(chain);
    }
    const was = before && ownChains(before, this.#settings);
    const is = after && ownChains(after, this.#settings);
    if (was) this.#leave(was);
    if (is) this.#use(is);
    const written = after && is && changedChains(was, is);
    if (written && written.declared.length > 0) changes.own.set(after.key, written);
  }
}

/** Those chains of a service port that hold something else than before. */
function changedChains(before: OwnChains | undefined, after: OwnChains): OwnChains {
  if (!before) return after;
  const wanted = after.rules();
  const differing = differingChains(before.rules(), wanted);
  const declared = after.declared.filter((chain) => differing.has(chain));
  const rules = wanted.filter((rule) => differing.has(chainOf(rule)));
  return { declared, count: rules.length, rules: () => rules };
}

function inOrder(own: ReadonlyMap<string, OwnChains>, services: CompiledService[]): Map<string, OwnChains> {
  const sorted = services.sort(compareServices).flatMap(({ key }) => {
    const chains = own.get(key);
    return chains ? [[key, chains] as const] : [];
  });
  return new Map(sorted);
}

function sameVariant(a: Variant, b: Variant): boolean {
  return a.comments === b.comments && a.countLocalhost === b.countLocalhost;
}
