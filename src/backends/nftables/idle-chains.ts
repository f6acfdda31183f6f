import type { Clock, Timer } from '../../lib/clock.ts';
import type { Closable, EngineSignals } from '../driver.ts';
import type { Commits } from './commits.ts';
import type { Believed } from './prepare.ts';
import type { NftablesSettings } from './settings.ts';
import { isHandler, type SharedChainName, sharedChainNeeds } from './shared-chains.ts';
import { idleSets, type Structure } from './structure.ts';

export interface IdleChainsOptions {
  readonly settings: NftablesSettings;
  readonly commits: Commits;
  readonly clock: Clock;
  readonly exclusively: EngineSignals<Believed>['exclusively'];
}

/** Chains to which nothing leads any more, and the structure that they were part of. */
interface Unlinked {
  readonly structure: Structure;
  readonly chains: readonly SharedChainName[];
  /** Until they are deleted. */
  readonly waitMs: number;
}

/** A chain that is needed again within this time, as in a rolling update, need not be made again. */
const idleMs = 60_000;
/** Before kernel 6.2 a chain counts as used for a moment after the element that led to it is gone. */
const unlinkedMs = 1_000;

/**
 * Removes shared chains that no service port has needed for a minute: first the elements of `handlers` that lead there,
 * a second later the chains, and the sets of sources that only they look into. Chains that the kernel does not delete are
 * tried again after a minute.
 */
export class IdleChains implements Closable {
  readonly #options: IdleChainsOptions;
  /** When the last service port left each chain, by the monotonic clock, the earliest first. Some have one again. */
  readonly #since = new Map<SharedChainName, number>();
  #unlinked: Unlinked | undefined;
  #timer: Timer | undefined;
  #isClosed = false;

  constructor(options: IdleChainsOptions) {
    this.#options = options;
  }

  /** Notes that no service port needs these chains any more. */
  released(chains: Iterable<SharedChainName>): void {
    const now = this.#options.clock.monotonic();
    for (const name of chains) {
      this.#since.delete(name);
      this.#since.set(name, now);
    }
    this.#arm();
  }

  close(): void {
    this.#isClosed = true;
    this.#timer?.cancel();
  }

  #arm(): void {
    const { clock, exclusively } = this.#options;
    const [earliest] = this.#since.values();
    if (this.#isClosed || this.#timer || (earliest === undefined && !this.#unlinked)) return;
    const ms = this.#unlinked?.waitMs ?? (earliest ?? 0) + idleMs - clock.monotonic();
    this.#timer = clock.setTimeout(() => {
      void exclusively((belief) => this.#removeIdle(belief)).finally(() => {
        this.#timer = undefined;
        this.#arm();
      });
    }, ms);
  }

  async #removeIdle(belief: Believed | undefined): Promise<void> {
    if (this.#isClosed) return;
    if (this.#unlinked) await this.#removeUnlinked(this.#unlinked, belief?.structure);
    else if (belief) await this.#unlink(belief, this.#takeDue());
    // Nothing is known: the full sync to come removes what is idle.
    else this.#since.clear();
  }

  #takeDue(): SharedChainName[] {
    const until = this.#options.clock.monotonic() - idleMs;
    const due = [...this.#since].filter(([, since]) => since <= until).map(([name]) => name);
    for (const name of due) this.#since.delete(name);
    return due;
  }

  async #unlink({ shadow, structure }: Believed, names: readonly SharedChainName[]): Promise<void> {
    const idle = names.filter((name) => structure.chains.has(name) && !shadow.needsChain(name));
    const handlers = idle.filter(isHandler);
    const keys = handlers.map((name) => shadow.handlers.elementOf(name)[0]);
    if (!(await this.#options.commits.removeHandlers(keys))) return;
    for (const name of handlers) shadow.handlers.retire(name);
    for (const name of idle) structure.chains.delete(name);
    const chains = [...idle, ...this.#takeUnreached(structure, idle)];
    if (chains.length > 0) this.#unlinked = { structure, chains, waitMs: unlinkedMs };
  }

  /** Removes from the structure the chains that only the given ones led to, and returns them. */
  #takeUnreached(structure: Structure, from: readonly SharedChainName[]): SharedChainName[] {
    const chainsBehind = (names: Iterable<SharedChainName>) =>
      new Set([...names].flatMap((name) => sharedChainNeeds(name, this.#options.settings).chains));
    const reached = chainsBehind(structure.chains);
    const unreached = [...chainsBehind(from)].filter((name) => !reached.has(name));
    for (const name of unreached) structure.chains.delete(name);
    return unreached;
  }

  /** Deletes what was not made again meanwhile, unless a full sync has done so. */
  async #removeUnlinked({ structure, chains }: Unlinked, current: Structure | undefined): Promise<void> {
    this.#unlinked = undefined;
    if (structure !== current) return;
    const sets = idleSets(structure, this.#options.settings);
    const unused = chains.filter((name) => !structure.chains.has(name));
    if (await this.#options.commits.removeChains(unused, sets)) {
      for (const set of sets) structure.sets.delete(set);
    } else this.#unlinked = { structure, chains: unused, waitMs: idleMs };
  }
}
