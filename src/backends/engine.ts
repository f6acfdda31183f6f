import type { Clock, Timer } from '../lib/clock.ts';
import { messageOf } from '../lib/thrown.ts';
import type { Family } from '../model/ip.ts';
import type { Logger } from '../obs/log.ts';
import { AddressWatch, type NodeAddresses } from './address-watch.ts';
import type { Backend, Condition, FastPathStatus, RepairRecord, SyncRequest, SyncResult } from './backend.ts';
import type { Closable, Driver, Wanted, WantedChanges, Written } from './driver.ts';
import type { RepairBudget } from './repair-budget.ts';
import { type ForeignChange, type RepairMetrics, Repairs, type Suspects, union } from './repairs.ts';
import { Retry } from './retry.ts';
import { findUnprepared, UnpreparedError } from './unprepared.ts';

export interface EngineOptions<Belief> {
  readonly family: Family;
  readonly driver: Driver<Belief>;
  /** See Backend. */
  readonly usesServiceCIDRs?: boolean;
  readonly flows?: Backend['flows'];
  /** Where the node's addresses come from; absent when nothing depends on them. */
  readonly addresses?: NodeAddresses | undefined;
  /** Milliseconds from a sync that left something to do to the next; see Retry. */
  readonly retryMs: number;
  /** Limits what repairs cost; the families share it. */
  readonly budget: RepairBudget;
  readonly metrics: RepairMetrics;
  readonly logger: Logger;
  readonly clock: Clock;
  /** Asks for a sync, as soon as possible. */
  readonly requestSync: () => void;
}

/** Attempts of one full sync without progress: the kernel is short of something, or another program keeps writing. */
const maxFutileAttempts = 8;

/**
 * Keeps one family of the kernel in line with plans, in every mode: a driver writes, the engine decides what and
 * when. While it knows what the kernel holds, the driver writes only changes. After a start, a failure, a refusal, a
 * change of the node's addresses or damage of unknown extent, the driver reads and writes everything. Service ports
 * that the kernel refuses, or that the driver cannot prepare, are left out and reported. What other programs damage is
 * repaired.
 */
export class SyncEngine<Belief> implements Backend {
  readonly family: Family;
  readonly usesServiceCIDRs: boolean;
  readonly flows: Backend['flows'];
  readonly #options: EngineOptions<Belief>;
  readonly #driver: Driver<Belief>;
  readonly #label: { readonly ipFamily: Family };
  readonly #repairs: Repairs;
  readonly #retry: Retry;
  /** What the kernel holds; undefined when that is not known. */
  #belief: Belief | undefined;
  /** What the next sync has to put right besides changes; undefined when nothing is in doubt. */
  #suspects: Suspects | undefined;
  /** Service ports that are not (fully) programmed. */
  readonly #refused = new Map<string, Error>();
  /** What the last full sync, or one after it, left to do. */
  #leftover: string | undefined;
  #addresses: readonly string[] = [];
  #watches: Closable[] | undefined;
  #periodic: Timer | undefined;
  /** The request that the sync under way serves, and the latest one; the same unless another one came meanwhile. */
  #served: { readonly since: number } | undefined;
  #owed: { readonly since: number } | undefined;
  #lastError: Condition['lastError'];
  /** Settles when no sync and no exclusive work is under way. */
  #idle: Promise<unknown> = Promise.resolve();
  #isClosed = false;

  constructor(options: EngineOptions<Belief>) {
    const { family, driver, budget, metrics, logger, clock, retryMs } = options;
    this.#options = options;
    this.#driver = driver;
    this.family = family;
    this.usesServiceCIDRs = options.usesServiceCIDRs ?? false;
    this.flows = options.flows;
    this.#label = { ipFamily: family };
    this.#retry = new Retry(clock, retryMs, () => this.#requestFullSync());
    this.#repairs = new Repairs({
      family,
      subject: driver.subject,
      budget,
      clock,
      logger,
      metrics,
      request: () => this.#requestRepair(),
    });
  }

  get skipsHourlySync(): boolean {
    return this.#driver.skipsHourlySync ?? false;
  }

  get fastPath(): FastPathStatus | undefined {
    return this.#driver.fastPath;
  }

  get condition(): Condition {
    const { wrong, fight } = this.#repairs;
    const retry = this.#retry.pending;
    return {
      ...(this.#owed && { syncOwedSince: this.#owed.since }),
      ...(wrong && { wrong }),
      ...(fight && { fight }),
      ...(retry && { retry }),
      ...(this.#lastError && { lastError: this.#lastError }),
    };
  }

  get repairs(): RepairRecord {
    return this.#repairs.record;
  }

  sync(request: SyncRequest): Promise<SyncResult> {
    return this.#exclusively(() => this.#sync(request));
  }

  withoutFastPath(work: () => Promise<void>): Promise<void> {
    return this.#exclusively(() => this.#driver.withoutFastPath?.(work) ?? work());
  }

  /** Ends all watches and timers, and waits for a sync under way. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#retry.cancel();
    this.#repairs.close();
    this.#periodic?.cancel();
    for (const watch of this.#watches ?? []) await watch.close();
    await this.#idle;
    await this.#driver.close?.();
  }

  #exclusively<T>(work: () => Promise<T>): Promise<T> {
    const run = this.#idle.then(work);
    this.#idle = run.catch(() => undefined);
    return run;
  }

  async #sync(request: SyncRequest): Promise<SyncResult> {
    // From before the first write on, so that no change after it can be missed.
    this.#watches ??= this.#startWatches();
    this.#owe();
    const served = this.#owed;
    this.#served = served;
    let hasSucceeded = false;
    try {
      const addressError = await this.#listAddresses();
      const wanted = { ...request, addresses: this.#addresses };
      const part = await this.#writePart(wanted);
      const written = part ?? (await this.#writeAll(wanted).finally(() => this.#armPeriodic()));
      this.#accept(written, part !== undefined, addressError);
      hasSucceeded = true;
    } catch (error) {
      this.#lastError = { at: this.#options.clock.now(), message: messageOf(error) };
      this.#owed = served;
      throw error;
    } finally {
      this.#served = undefined;
      this.#repairs.end(hasSucceeded);
    }
    if (this.#owed === served) this.#owed = undefined;
    return { refused: [...this.#refused].map(([key, error]) => ({ key, error })) };
  }

  /** Writes changes, after a repair of what is suspect. Resolves to undefined when everything has to be written. */
  async #writePart(wanted: SyncRequest & Wanted): Promise<Written<Belief> | undefined> {
    const { changed } = wanted;
    if (this.#repairs.isRequested)
      this.#suspects = union(this.#suspects, this.#repairs.begin() ?? 'everything');
    const [belief, suspects] = [this.#belief, this.#suspects];
    if (changed === 'all' || belief === undefined || suspects === 'everything') return undefined;
    this.#belief = undefined;
    this.#suspects = undefined;
    const changes: WantedChanges = { ...wanted, changed };
    try {
      const written = suspects
        ? await this.#driver.writeRepair?.(belief, suspects, changes)
        : await this.#driver.writeChanges(belief, changes);
      if (written) for (const key of changed) this.#refused.delete(key);
      return written;
    } catch (error) {
      if (!this.#driver.isRefusal(error) && (await this.#unpreparedOf(changes, changed)).size === 0)
        throw error;
      this.#options.logger.error(error, 'Partial sync refused; syncing everything', this.#label);
      return undefined;
    }
  }

  /** Writes everything but the service ports that cannot be prepared or turn out to be refused. */
  async #writeAll(wanted: Wanted): Promise<Written<Belief>> {
    this.#belief = undefined;
    this.#suspects = undefined;
    // It also puts right what a pending repair is for.
    this.#repairs.begin();
    this.#refused.clear();
    try {
      return await this.#attemptAll(wanted);
    } catch (error) {
      const unprepared = await this.#unpreparedOf(wanted);
      if (unprepared.size === 0) throw error;
      for (const [key, reason] of unprepared) this.#refused.set(key, reason);
      const plans = new Map([...wanted.plans].filter(([key]) => !unprepared.has(key)));
      return await this.#attemptAll({ ...wanted, plans });
    }
  }

  /** Finds the plans at fault after a write failed: looking at every plan before each write would cost too much. */
  #unpreparedOf({ plans }: Wanted, keys: Iterable<string> = plans.keys()): Promise<Map<string, Error>> {
    return findUnprepared(keys, plans, (plan) => this.#driver.prepareAlone(plan), this.#options.clock);
  }

  /** Writes everything but the service ports that turn out to be refused. */
  async #attemptAll(wanted: Wanted): Promise<Written<Belief>> {
    const full = this.#driver.writeAll(wanted);
    let futileAttempts = 0;
    for (;;) {
      try {
        return await full.attempt(this.#refused);
      } catch (error) {
        const remedy = await full.remedy(error, this.#refused);
        if (remedy === undefined) throw error;
        futileAttempts = remedy === 'again' ? futileAttempts + 1 : 0;
        if (futileAttempts === maxFutileAttempts) throw error;
        if (typeof remedy === 'string') continue;
        const known = this.#refused.size;
        for (const [key, reason] of remedy) this.#refused.set(key, reason);
        if (this.#refused.size === known) throw error;
      }
    }
  }

  #accept({ belief, failures, retry }: Written<Belief>, isPartial: boolean, addressError?: string): void {
    this.#belief = belief;
    for (const [key, error] of failures) this.#refused.set(key, error);
    const left = retry ?? addressError;
    if (left !== undefined || !isPartial) this.#leftover = left;
    const reason = this.#leftover ?? this.#temporaryRefusal();
    if (reason === undefined) this.#retry.reset();
    // A retry that is pending still comes in time: partial syncs do not put it off.
    else if (!this.#isClosed && !(isPartial && this.#retry.pending)) this.#retry.schedule(reason);
  }

  #temporaryRefusal(): string | undefined {
    const temporary = [...this.#refused].find(
      ([, error]) => !(error instanceof UnpreparedError) && this.#driver.isTemporary?.(error),
    );
    return temporary && `${temporary[0]}: ${temporary[1].message}`;
  }

  /** Lists the node's addresses. On failure keeps the known ones and resolves to the reason. */
  async #listAddresses(): Promise<string | undefined> {
    const { addresses, logger } = this.#options;
    try {
      if (addresses) this.#addresses = await addresses.source.list();
      return undefined;
    } catch (error) {
      logger.error(error, 'Failed to list interface addresses; using those known', this.#label);
      return `failed to list interface addresses: ${messageOf(error)}`;
    }
  }

  #startWatches(): Closable[] {
    const { addresses, clock, logger } = this.#options;
    const onChange = () => this.#requestFullSync();
    const watched = this.#driver.watch?.({
      changed: (change) => this.#noteDamage(change),
      requestFullSync: onChange,
      exclusively: (work) => this.#exclusively(() => work(this.#belief)),
    });
    const watches = [...(watched ?? [])];
    if (addresses?.relevant) {
      const { source, relevant } = addresses;
      watches.push(new AddressWatch({ source, relevant, clock, logger, onChange }));
    }
    return watches;
  }

  #noteDamage(change: ForeignChange): void {
    if (!this.#isClosed) this.#repairs.changed(change);
  }

  #requestRepair(): void {
    this.#driver.repairing?.();
    this.#request();
  }

  #requestFullSync(): void {
    this.#suspects = 'everything';
    this.#request();
  }

  #request(): void {
    if (this.#isClosed) return;
    this.#owe();
    this.#options.requestSync();
  }

  /** A sync is owed from now on, unless one was already; the one under way may be too early. */
  #owe(): void {
    if (this.#owed && this.#owed !== this.#served) return;
    this.#owed = { since: this.#options.clock.now() };
  }

  #armPeriodic(): void {
    const { fullSyncPeriodMs } = this.#driver;
    if (fullSyncPeriodMs === undefined || this.#isClosed) return;
    this.#periodic?.cancel();
    this.#periodic = this.#options.clock.setTimeout(() => this.#requestFullSync(), fullSyncPeriodMs);
  }
}
