import type { Backend, FastPathStatus, RepairRecord, RulesWrong, SyncResult } from '../backends/backend.ts';
import type { FamilyView, SyncActivity } from '../inspect/family-view.ts';
import type { Journalist } from '../inspect/journal.ts';
import { BoundedFrequencyRunner, type RunnerIntervals } from '../lib/bounded-frequency-runner.ts';
import type { Clock, Timer } from '../lib/clock.ts';
import { count } from '../lib/count.ts';
import { TimeSlice } from '../lib/time-slice.ts';
import type { Family } from '../model/ip.ts';
import type { ObjectProblem } from '../model/object-problem.ts';
import type { EndpointSliceObject, ResourceName, ServiceObject } from '../model/objects.ts';
import type { Placements } from '../model/placement.ts';
import { type Problem, STARTING } from '../model/problem.ts';
import type { ServicePort } from '../model/service-port.ts';
import type { ServiceDefaults } from '../model/service-ports.ts';
import type { Logger } from '../obs/log.ts';
import type { ProxyMetrics } from '../obs/proxy-metrics.ts';
import type { PlannedPort } from '../plan/plan.ts';
import { Planner } from '../plan/planner.ts';
import type { ServicePlan } from '../plan/service-plan.ts';
import type { DepartedEndpoints } from '../state/departures.ts';
import { FamilyState } from '../state/family-state.ts';
import type { Delta } from '../state/ledger.ts';
import { FirstLists } from './first-lists.ts';
import type { FamilySink } from './router.ts';
import { SyncLog } from './sync-log.ts';

const HOUR_MS = 3_600_000;
/** Services and slices to apply between two checks of the time slice: about a millisecond's work. */
const CHANGES_PER_STEP = 100;

/** Records requested and finished syncs; /healthz is derived from them. */
export interface HealthMarks {
  queued(family: Family): void;
  updated(family: Family): void;
}

/** Serves the health check node ports of Services; keys are `namespace/name`. */
export interface ServiceHealth {
  /** Listens on these addresses from the next `sync` on. */
  listenOn(addresses: readonly string[]): void;
  sync(ports: ReadonlyMap<string, number>, localReady: ReadonlyMap<string, number>): void;
}

/** Removes conntrack entries that changed plans have made stale. Runs in the background, not as part of the sync. */
export interface FlowReconciler {
  /** Notes which plans changed. A key without a plan was removed. */
  note(keys: Iterable<string>, plans: ReadonlyMap<string, ServicePlan>): void;
  /** Call when the kernel holds the noted plans. Starts, in the background, to remove flows that contradict them. */
  reconcile(): void;
  close(): Promise<void>;
}

/** Ends connections of this node's own processes to departed endpoints. Runs in the background. */
export interface DepartedSockets {
  /** Call when the kernel resets the connections of these endpoints. The map is live. */
  follow(departed: DepartedEndpoints): void;
  close(): Promise<void>;
}

/** What the configuration decides, as far as it can change while the program runs. */
export interface ProxierSettings {
  readonly backend: Backend;
  /** Milliseconds between two syncs. */
  readonly minSyncPeriod: number;
  /** Milliseconds until a failed sync is retried. */
  readonly syncPeriod: number;
  /** Where health check node ports are served. */
  readonly healthCheckAddresses: readonly string[];
}

export interface FamilyProxierOptions {
  readonly family: Family;
  readonly nodeName: string;
  readonly settings: ProxierSettings;
  readonly allowExternalIPs: boolean;
  /** See FamilyStateOptions. */
  readonly defaults?: ServiceDefaults;
  /** ipvs counts Services without local endpoints, the other modes service ports. */
  readonly countsServices: boolean;
  readonly metrics: ProxyMetrics;
  readonly health: HealthMarks;
  readonly serviceHealth: ServiceHealth;
  readonly flows: FlowReconciler;
  readonly departedSockets?: DepartedSockets | undefined;
  readonly journal: Journalist;
  readonly onProblem: (problem: ObjectProblem) => void;
  /** Service ports that are not, or not fully, programmed after the last sync. */
  readonly onRefused: (refused: SyncResult['refused']) => void;
  readonly clock: Clock;
  readonly logger: Logger;
}

/**
 * Keeps one family of the kernel in line with the cluster. It collects changes; when a sync is due, it plans them and
 * the backend writes them. Only then it acknowledges them and updates health, metrics and conntrack.
 */
export class FamilyProxier implements FamilyView, FamilySink {
  readonly family: Family;
  readonly #options: FamilyProxierOptions;
  #settings: ProxierSettings;
  readonly #state: FamilyState;
  readonly #planner = new Planner();
  readonly #planListeners = new Set<(keys: Iterable<string>) => void>();
  readonly #log: SyncLog;
  readonly #runner: BoundedFrequencyRunner;
  readonly #label: { readonly ip_family: Family };
  readonly #firstLists: FirstLists;
  readonly #firstSync = Promise.withResolvers<void>();
  #zone = '';
  #serviceCIDRs: readonly string[] = [];
  #needsFullSync = true;
  /** Runs while a Service and its slices have different names for a port. */
  #renameDue: Timer | undefined;
  /** As of the last sync. */
  #departed: DepartedEndpoints = new Map();
  /** Runs until these change without an event. */
  #departedDue: Timer | undefined;
  /** The backend asked for a sync. */
  #isRepairDue = false;
  /** Both times are by the monotonic clock: somebody may set the other one back. */
  #lastFullSync = 0;
  /** When the first sync was asked for that has not succeeded. */
  #requestedAt: number | undefined;
  /** Service ports that the kernel refused in the last sync; undefined when that failed. */
  #refused: ReadonlySet<string> | undefined = new Set();
  /** Repairs of backends that were replaced. */
  #earlierRepairs: RepairRecord = { count: 0, wrongMs: 0 };

  constructor(options: FamilyProxierOptions) {
    const { family, settings, serviceHealth, journal, clock, logger } = options;
    this.family = family;
    this.#options = options;
    this.#settings = settings;
    this.#label = { ip_family: family };
    this.#log = new SyncLog(family, this, journal, clock);
    serviceHealth.listenOn(settings.healthCheckAddresses);
    this.#state = new FamilyState({ ...options, startTime: clock.now() });
    const usesServiceCIDRs = settings.backend.usesServiceCIDRs ?? false;
    this.#firstLists = new FirstLists({ usesServiceCIDRs, clock, onComplete: () => this.#requestSync() });
    this.#runner = new BoundedFrequencyRunner({
      work: async () => {
        await this.#sync();
      },
      ...intervalsOf(settings),
      onError: (error) => {
        const retryingTime = this.#settings.syncPeriod;
        logger.error(error, 'Sync failed', { ipFamily: family, retryingTime });
      },
      clock,
    });
  }

  /** Starts to sync. Writes nothing before the first lists have come. */
  start(): void {
    const { health, metrics, clock } = this.#options;
    health.updated(this.family);
    metrics.lastQueued.set(clock.now() / 1000, this.#label);
    this.#runner.start();
  }

  /** Waits for a running sync. The kernel's rules stay. */
  async stop(): Promise<void> {
    await this.#runner.stop();
    this.#firstLists.close();
    this.#renameDue?.cancel();
    this.#departedDue?.cancel();
    await this.#options.departedSockets?.close();
    await this.#options.flows.close();
    await this.#settings.backend.close();
  }

  /** Starts no sync until `resume`; resolves when none is under way. Changes are collected meanwhile. */
  async pause(): Promise<void> {
    await this.#runner.pause();
  }

  resume(): void {
    if (this.#needsFullSync) this.#requestSync();
    this.#runner.resume();
  }

  /**
   * Goes on with other settings and closes the backend of the former ones. Call it between `pause` and `resume`. The
   * kernel's rules stay until the next sync.
   */
  async replace(settings: ProxierSettings): Promise<void> {
    this.#earlierRepairs = this.repairs;
    const { backend } = this.#settings;
    this.#settings = settings;
    this.#needsFullSync = true;
    this.#runner.setIntervals(intervalsOf(settings));
    this.#options.serviceHealth.listenOn(settings.healthCheckAddresses);
    await backend.close();
  }

  /**
   * Syncs everything between `pause` and `resume`, if syncs have begun. Rejects when that fails, and when the kernel
   * refuses a service port that it accepted in the sync before, although the service port has not changed.
   */
  async syncReplaced(): Promise<void> {
    if (!this.isInitialised || !this.#runner.isStarted) return;
    const before = this.#refused;
    const changed = await this.#sync();
    const refused = [...(this.#refused ?? [])].filter(
      (key) => before && !before.has(key) && !changed.has(key),
    );
    if (refused.length === 0) return;
    const what = count(refused.length, 'service port');
    throw new Error(`the kernel refuses ${what} that it accepted before: ${refused[0]}`);
  }

  updateService(previous: ServiceObject | undefined, object: ServiceObject | undefined): void {
    const { metrics } = this.#options;
    const hasChanges = this.#state.updateService(previous, object);
    metrics.serviceChangesTotal.inc();
    metrics.serviceChangesPending.set(this.#state.pendingServices);
    if (hasChanges) this.#requestSync();
  }

  updateSlice(object: EndpointSliceObject, removed: boolean): void {
    const { metrics } = this.#options;
    const seen = this.#state.sliceEvents;
    const hasChanged = this.#state.updateSlice(object, removed);
    if (this.#state.sliceEvents > seen) metrics.endpointChangesTotal.inc();
    if (!hasChanged) return;
    // Adds instead of setting: both families share the gauge.
    metrics.endpointChangesPending.add(1);
    this.#requestSync();
  }

  synced(resource: ResourceName): void {
    this.#firstLists.listed(resource);
  }

  setZone(zone: string): void {
    if (zone === this.#zone) return;
    this.#zone = zone;
    this.#needsFullSync = true;
    // As in upstream: a node with a zone is unhealthy when its first sync is late.
    if (!this.isInitialised) this.#noteRequest();
    this.#requestSync();
  }

  /** Requests a sync, so that unallocated addresses are dropped as soon as the ranges are known. */
  setServiceCIDRs(cidrs: readonly string[]): void {
    if (cidrs === this.#serviceCIDRs) return;
    this.#serviceCIDRs = cidrs;
    if (this.#settings.backend.usesServiceCIDRs) this.#requestSync();
  }

  /** Requests a sync at once, for a backend that has something to repair in the kernel. Counts as a full sync. */
  repair(): void {
    this.#isRepairDue = true;
    this.#requestSync(true);
  }

  /** Does the work while no connection is on the fast path, and no sync is under way. */
  withoutFastPath(work: () => Promise<void>): Promise<void> {
    const { backend } = this.#settings;
    return backend.withoutFastPath ? backend.withoutFastPath(work) : work();
  }

  /** Resolves after the first successful sync. */
  get firstSync(): Promise<void> {
    return this.#firstSync.promise;
  }

  get isInitialised(): boolean {
    return this.#firstLists.areComplete;
  }

  get plans(): ReadonlyMap<string, PlannedPort> {
    return this.#planner.plans;
  }

  /** Calls back with the keys of plans that changed, before they are written; the function returned ends that. */
  followPlans(listener: (keys: Iterable<string>) => void): () => void {
    this.#planListeners.add(listener);
    return () => void this.#planListeners.delete(listener);
  }

  placements(port: ServicePort, known?: Placements): Placements {
    return this.#state.placements(port, known);
  }

  get serviceCIDRs(): readonly string[] {
    return this.#serviceCIDRs;
  }

  get totalEndpoints(): number {
    return this.#state.totalEndpoints;
  }

  get departed(): DepartedEndpoints {
    return this.#departed;
  }

  get pending(): FamilyView['pending'] {
    return { services: this.#state.pendingServices, slices: this.#state.pendingSlices };
  }

  get activity(): SyncActivity {
    return this.#log;
  }

  get fastPath(): FastPathStatus | undefined {
    return this.#settings.backend.fastPath;
  }

  get repairs(): RepairRecord {
    const { count, wrongMs, last } = this.#earlierRepairs;
    const now = this.#settings.backend.repairs;
    const lastOfAll = now.last ?? last;
    return {
      count: count + now.count,
      wrongMs: wrongMs + now.wrongMs,
      ...(lastOfAll && { last: lastOfAll }),
    };
  }

  /** What is wrong in this family now. */
  problems(): Problem[] {
    const { family } = this;
    const { isFailing, lastFailure } = this.#log;
    const problems: Problem[] = [];
    if (!this.isInitialised) {
      const text = 'Services and EndpointSlices have not been listed yet';
      problems.push({ kind: STARTING, family, isOutage: false, text });
    }
    if (isFailing && lastFailure) {
      const text = `the last sync failed: ${lastFailure.message}`;
      problems.push({ kind: 'SyncFailed', family, since: lastFailure.at, isOutage: false, text });
    }
    const { retry, wrong, fight } = this.#settings.backend.condition;
    if (wrong) {
      const text = rulesWrongText(wrong, this.#options.clock.now());
      problems.push({ kind: 'RulesWrong', family, since: wrong.since, isOutage: true, text });
    }
    if (fight) {
      const text = `another program keeps changing the rules: ${fight.by}`;
      problems.push({ kind: 'RulesContested', family, since: fight.since, isOutage: false, text });
    }
    if (retry) {
      const text = `a part could not be written and is tried again: ${retry.reason}`;
      problems.push({ kind: 'SyncIncomplete', family, isOutage: false, text });
    }
    return problems;
  }

  #requestSync(isUrgent = false): void {
    if (!this.isInitialised) return;
    this.#noteRequest();
    this.#requestedAt ??= this.#options.clock.monotonic();
    if (isUrgent) this.#runner.requestNow();
    else this.#runner.request();
  }

  /** Records for health and metrics that a sync is due from now on. */
  #noteRequest(): void {
    const { health, metrics, clock } = this.#options;
    health.queued(this.family);
    metrics.lastQueued.set(clock.now() / 1000, this.#label);
  }

  /** Returns the keys of plans that changed. */
  async #sync(): Promise<ReadonlySet<string>> {
    if (!this.isInitialised) return new Set();
    const { metrics, clock } = this.#options;
    const { backend } = this.#settings;
    const started = clock.monotonic();
    const isHourUp = started - this.#lastFullSync >= HOUR_MS && backend.skipsHourlySync !== true;
    const scope = this.#needsFullSync || isHourUp ? 'all' : 'changes';
    const isFull = scope === 'all' || this.#isRepairDue;
    this.#needsFullSync = false;
    this.#isRepairDue = false;
    const requestedAt = this.#requestedAt;
    this.#requestedAt = undefined;
    this.#log.begin();
    try {
      const { changed, delta } = await this.#write(scope);
      const finished = clock.monotonic();
      if (isFull) this.#lastFullSync = finished;
      const kind = isFull ? 'full' : 'partial';
      this.#log.succeeded(
        { durationMs: finished - started, kind, changed: changed.size },
        { delta, waitMs: requestedAt === undefined ? undefined : finished - requestedAt },
      );
      this.#firstSync.resolve();
      return changed;
    } catch (error) {
      this.#needsFullSync = true;
      this.#requestedAt = requestedAt ?? this.#requestedAt;
      this.#refused = undefined;
      this.#log.failed(error);
      throw error;
    } finally {
      const seconds = (clock.monotonic() - started) / 1000;
      metrics.syncDuration.observe(seconds, this.#label);
      (isFull ? metrics.fullSyncDuration : metrics.partialSyncDuration).observe(seconds, this.#label);
    }
  }

  /** Returns the keys of plans that changed, and the changes that are now programmed. */
  async #write(scope: 'all' | 'changes'): Promise<{ changed: ReadonlySet<string>; delta: Delta }> {
    const { flows, nodeName, allowExternalIPs, onRefused, clock } = this.#options;
    const { backend } = this.#settings;
    const timeSlice = new TimeSlice(clock);
    const delta = await this.#takeDelta(timeSlice);
    const context = { nodeName, zone: this.#zone, allowExternalIPs };
    const changed = await this.#planner.apply(delta.changed, this.#state, context, timeSlice);
    const { plans } = this.#planner;
    this.#departed = this.#state.departed(clock.monotonic());
    // Endpoints come to count as departed, and no longer do, without an event.
    this.#departedDue?.cancel();
    this.#departedDue = this.#syncAt(this.#state.departedDueAt);
    // Before the write, so that the changes of a failed sync are not forgotten.
    flows.note(changed, plans);
    for (const listener of this.#planListeners) listener(changed);
    const result = await backend.sync({
      plans,
      changed: scope === 'all' ? 'all' : changed,
      serviceCIDRs: this.#serviceCIDRs,
      totalEndpoints: this.#state.totalEndpoints,
      departed: this.#departed,
    });
    this.#state.acknowledge(delta);
    flows.reconcile();
    this.#options.departedSockets?.follow(this.#departed);
    this.#refused = new Set(result.refused.map(({ key }) => key));
    onRefused([...result.refused, ...this.#planner.shortfalls()]);
    this.#reportSuccess(delta);
    return { changed, delta };
  }

  async #takeDelta(timeSlice: TimeSlice): Promise<Delta> {
    const { metrics, clock } = this.#options;
    while (this.#state.applyPending(CHANGES_PER_STEP)) if (timeSlice.isSpent) await timeSlice.yield();
    const delta = this.#state.takeDelta(clock.monotonic());
    this.#renameDue?.cancel();
    this.#renameDue = this.#syncAt(this.#state.renameDueAt);
    metrics.serviceChangesPending.set(this.#state.pendingServices);
    metrics.endpointChangesPending.set(this.#state.pendingSlices);
    return delta;
  }

  /** Requests a sync for a time by the monotonic clock. Returns the timer; undefined without a time. */
  #syncAt(dueAt: number | undefined): Timer | undefined {
    if (dueAt === undefined) return undefined;
    const { clock } = this.#options;
    return clock.setTimeout(() => this.#requestSync(), Math.max(0, dueAt - clock.monotonic()));
  }

  #reportSuccess({ triggerTimes }: Delta): void {
    const { metrics, clock, health, serviceHealth, countsServices } = this.#options;
    const now = clock.now();
    for (const times of triggerTimes.values()) {
      for (const time of times) metrics.networkProgrammingDuration.observe((now - time) / 1000, this.#label);
    }
    const lacking = countsServices
      ? this.#planner.servicesWithoutLocalEndpoints
      : this.#planner.noLocalEndpoints;
    metrics.noLocalEndpoints.set(lacking.internal, { traffic_policy: 'internal', ...this.#label });
    metrics.noLocalEndpoints.set(lacking.external, { traffic_policy: 'external', ...this.#label });
    health.updated(this.family);
    metrics.lastSync.set(now / 1000, this.#label);
    serviceHealth.sync(this.#state.healthCheckPorts(), this.#state.localReadyCounts());
  }
}

function intervalsOf({ minSyncPeriod, syncPeriod }: ProxierSettings): RunnerIntervals {
  return {
    minInterval: minSyncPeriod,
    retryInterval: syncPeriod,
    maxInterval: Math.max(HOUR_MS, minSyncPeriod),
  };
}

function rulesWrongText({ dueAt, by, changes }: RulesWrong, now: number): string {
  const seconds = (ms: number) => `${Math.max(0, ms / 1000).toFixed(1)} s`;
  const repair = dueAt === undefined ? 'repair under way' : `repair due in ${seconds(dueAt - now)}`;
  return `rules are wrong: ${repair}; changed by ${by} (${changes})`;
}
