import { linesAround } from '../../kernel/iptables/command-error.ts';
import type { VirtualServer } from '../../kernel/ipvs/objects.ts';
import type { Clock, Timer } from '../../lib/clock.ts';
import { inGroups } from '../../lib/groups.ts';
import { asError } from '../../lib/thrown.ts';
import { TimeSlice } from '../../lib/time-slice.ts';
import type { Family } from '../../model/ip.ts';
import type { Logger } from '../../obs/log.ts';
import type { ProxyMetrics } from '../../obs/proxy-metrics.ts';
import type { ServicePlan } from '../../plan/service-plan.ts';
import type { Backend, SyncRequest, SyncResult } from '../backend.ts';
import { Application } from './apply.ts';
import type { CurrentState } from './current.ts';
import { DesiredState, type Scope, Touched } from './desired.ts';
import { diffServers, diffShared, everything } from './diff.ts';
import { GracefulTermination } from './graceful.ts';
import { type InterfaceFacts, interfaceFacts, noFacts, sameFacts } from './interface-facts.ts';
import type { IpvsKernel } from './kernel.ts';
import { readCurrent } from './read.ts';
import type { IpvsSettings } from './settings.ts';
import { ensureStructure } from './structure.ts';

export type IpvsMetrics = Pick<ProxyMetrics, 'iptablesRestoreFailures'>;

export interface IpvsOptions {
  readonly settings: IpvsSettings;
  readonly kernel: IpvsKernel;
  readonly metrics: IpvsMetrics;
  readonly logger: Logger;
  readonly clock: Clock;
  /** Has everything synced again. */
  readonly requestFullSync: () => void;
  /**
   * From a sync in which something failed to the next, unless somebody asks for one; twice as long each time that
   * fails again, up to a minute.
   */
  readonly retryMs: number;
}

/** Retrying any faster would only keep a busy kernel busy. */
const minRetryMs = 1_000;
const maxRetryMs = 60_000;
/** Virtual servers done in one go: a whole cluster at once would hold up health checks. */
const keysPerGroup = 200;

type Plans = ReadonlyMap<string, ServicePlan>;

/**
 * ipvs mode in one family. What the kernel holds is read at the first sync, after a failure, when the node's
 * addresses change, and with `changed: 'all'`; otherwise only what changed service ports bear on is looked at.
 */
export class IpvsBackend implements Backend {
  readonly family: Family;
  readonly #options: IpvsOptions;
  readonly #desired: DesiredState;
  readonly #graceful: GracefulTermination;
  /** Undefined when it is not known what the kernel holds. */
  #current: CurrentState | undefined;
  /** The rules that were last restored. */
  #rules = '';
  #facts: InterfaceFacts = noFacts;
  /** The node's addresses could not be listed, so that the facts may be old. */
  #areFactsOld = false;
  /** No full sync has been completed: weights may be those that an earlier run has set. */
  #isInitial = true;
  /** Service ports that are not programmed as they ask. */
  readonly #refused = new Map<string, Error>();
  /** Rules could not be restored in this sync. */
  #haveRulesFailed = false;
  #retry: Timer | undefined;
  /** Syncs in a row in which something failed. */
  #failures = 0;
  /** Ends when nothing is being written. */
  #idle: Promise<unknown> = Promise.resolve();
  #isClosed = false;

  constructor(options: IpvsOptions) {
    const { settings, kernel, clock, logger } = options;
    this.#options = options;
    this.family = settings.family;
    this.#desired = new DesiredState(settings);
    this.#graceful = new GracefulTermination({
      servers: kernel.servers,
      clock,
      logger,
      exclusively: (work) => this.#exclusively(work),
      onGone: (server, real) => this.#current?.servers.get(server)?.reals.delete(real),
    });
  }

  sync(request: SyncRequest): Promise<SyncResult> {
    return this.#exclusively(() => this.#sync(request));
  }

  /** Everything stays in the kernel, and what drains stays drained; the kernel's owner closes it. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#retry?.cancel();
    this.#graceful.close();
    await this.#idle;
  }

  /** Syncs and looks at draining real servers take turns: both write what the other one reads. */
  #exclusively<T>(work: () => Promise<T>): Promise<T> {
    const run = this.#idle.then(work);
    this.#idle = run.catch(() => undefined);
    return run;
  }

  async #sync({ plans, changed }: SyncRequest): Promise<SyncResult> {
    this.#retry?.cancel();
    const haveFactsChanged = await this.#readFacts();
    const isPartial = changed !== 'all' && !haveFactsChanged;
    this.#haveRulesFailed = false;
    const isTidy = (isPartial && (await this.#syncChanges(plans, changed))) || (await this.#syncAll(plans));
    if (!isTidy || this.#refused.size > 0 || this.#areFactsOld) this.#scheduleRetry();
    else this.#failures = 0;
    return { refused: [...this.#refused].map(([key, error]) => ({ key, error })) };
  }

  /** False when a full sync is needed: nothing is known, or the kernel turned out to hold something else. */
  async #syncChanges(plans: Plans, changed: ReadonlySet<string>): Promise<boolean> {
    const current = this.#current;
    if (!current) return false;
    this.#current = undefined;
    const touched = new Touched();
    for (const key of changed) this.#desired.place(key, plans.get(key), touched);
    if (!(await this.#isWritten(current, touched))) return false;
    for (const key of changed) this.#refused.delete(key);
    this.#current = current;
    return true;
  }

  /** Whatever fails, somebody else may have changed what it builds on; a full sync finds out. */
  async #isWritten(current: CurrentState, scope: Scope): Promise<boolean> {
    try {
      if ((await this.#write(current, scope)).isComplete) return true;
      this.#options.logger.v(2).info('Partial sync failed; reading everything back', { family: this.family });
    } catch (error) {
      this.#options.logger.error(error, 'Partial sync failed; reading everything back', {
        family: this.family,
      });
    }
    return false;
  }

  /** True when all is there and nothing stale is left. */
  async #syncAll(plans: Plans): Promise<boolean> {
    const { kernel } = this.#options;
    this.#current = undefined;
    this.#rules = '';
    const problems: Error[] = [];
    await ensureStructure(kernel, this.family, problems);
    await this.#placeAll(plans);
    const current = await readCurrent(kernel, this.#desired, problems);
    const application = await this.#write(current, everything(current, this.#desired));
    problems.push(...application.problems);
    this.#refused.clear();
    for (const [key, error] of application.failures) this.#refused.set(key, error);
    if (problems.length > 0) return this.#goOnWithout(problems);
    this.#current = current;
    // Differs from upstream (initial-until-complete), where a first sync that fails counts as well.
    if (this.#refused.size === 0) this.#isInitial = false;
    return application.leftovers === 0;
  }

  /** Services are served as far as they can be; what is known of the kernel is not enough for a partial sync. */
  #goOnWithout(problems: readonly Error[]): false {
    for (const problem of problems) {
      this.#options.logger.error(problem, 'Sync went on without what failed', { family: this.family });
    }
    return false;
  }

  async #placeAll(plans: Plans): Promise<void> {
    for (const key of [...this.#desired.keys()]) if (!plans.has(key)) this.#desired.place(key, undefined);
    const timeSlice = new TimeSlice(this.#options.clock);
    for (const [key, plan] of plans) {
      this.#desired.place(key, plan);
      if (timeSlice.isSpent) await timeSlice.yield();
    }
  }

  /**
   * What is masqueraded and filtered, then what is served; what is stale goes in the opposite order. Differs from
   * upstream (filtered-first), which serves a service some time before anything masquerades or filters its packets.
   */
  async #write(current: CurrentState, scope: Scope): Promise<Application> {
    const { kernel, logger } = this.#options;
    const desired = this.#desired;
    const application = new Application({ kernel, desired, current, graceful: this.#graceful, logger });
    const { sets, unbind } = diffShared(current, desired, scope);
    for (const change of sets) await application.addEntries(change);
    const rulesError = await this.#restoreRules();
    const stale = await this.#writeServers(application, current, scope.servers);
    // What is served without rules is served all the same; what rules may still lead to stays.
    if (rulesError) throw rulesError;
    await application.unbind(unbind);
    await application.deleteServers(stale);
    for (const change of sets) await application.removeEntries(change);
    return application;
  }

  /** Those that are stale. */
  async #writeServers(
    application: Application,
    current: CurrentState,
    all: Iterable<string>,
  ): Promise<readonly VirtualServer[]> {
    const stale: VirtualServer[] = [];
    const timeSlice = new TimeSlice(this.#options.clock);
    for (const keys of inGroups(all, keysPerGroup)) {
      if (timeSlice.isSpent) await timeSlice.yield();
      const { servers, deleteServers } = diffServers(current, this.#desired, keys, {
        isDraining: (server, real) => this.#graceful.isDraining(server, real),
        resetWeights: this.#isInitial,
      });
      await application.changeServers(servers);
      stale.push(...deleteServers);
    }
    return stale;
  }

  /** Why the rules could not be restored; undefined when they are as they should be. */
  async #restoreRules(): Promise<Error | undefined> {
    const { kernel, metrics, logger } = this.#options;
    const rules = this.#desired.rules();
    if (rules === this.#rules) return undefined;
    this.#rules = '';
    try {
      await kernel.iptables.restore(rules);
    } catch (cause) {
      const error = asError(cause);
      // A partial sync that fails is followed by a full one: one sync, one failure.
      if (!this.#haveRulesFailed) metrics.iptablesRestoreFailures.inc({ ip_family: this.family });
      this.#haveRulesFailed = true;
      logger.error(error, 'Failed to restore rules', {
        family: this.family,
        lines: linesAround(rules, error.message),
      });
      return error;
    }
    this.#rules = rules;
    return undefined;
  }

  /**
   * True when they are others than before. Differs from upstream (node-addresses-kept), which takes a failure to list
   * addresses for a node that has none.
   */
  async #readFacts(): Promise<boolean> {
    const { kernel, settings, logger } = this.#options;
    try {
      const facts = interfaceFacts(settings, await kernel.nodeAddresses());
      this.#areFactsOld = false;
      if (sameFacts(facts, this.#facts)) return false;
      this.#facts = facts;
      this.#desired.setFacts(facts);
      return true;
    } catch (error) {
      this.#areFactsOld = true;
      logger.error(error, 'Failed to list the addresses of this node; using those known', {
        family: this.family,
      });
      return false;
    }
  }

  /** Differs from upstream (early-retry), which leaves what failed until something changes or a period ends. */
  #scheduleRetry(): void {
    if (this.#isClosed) return;
    const { clock, retryMs, requestFullSync } = this.#options;
    const delay = Math.max(retryMs, minRetryMs) * 2 ** Math.min(this.#failures++, 6);
    this.#retry = clock.setTimeout(requestFullSync, Math.min(delay, Math.max(retryMs, maxRetryMs)));
  }
}
