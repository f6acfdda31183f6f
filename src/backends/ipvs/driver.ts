import { linesAround } from '../../kernel/iptables/command-error.ts';
import type { VirtualServer } from '../../kernel/ipvs/objects.ts';
import type { Clock } from '../../lib/clock.ts';
import { inGroups } from '../../lib/groups.ts';
import { asError } from '../../lib/thrown.ts';
import { TimeSlice } from '../../lib/time-slice.ts';
import type { Logger } from '../../obs/log.ts';
import type { ProxyMetrics } from '../../obs/proxy-metrics.ts';
import type { ServicePlan } from '../../plan/service-plan.ts';
import type {
  Closable,
  Driver,
  EngineSignals,
  FullWrite,
  Wanted,
  WantedChanges,
  Written,
} from '../driver.ts';
import { Application } from './apply.ts';
import { compilePlan } from './compile.ts';
import type { CurrentState } from './current.ts';
import { DesiredState, type Scope, Touched } from './desired.ts';
import { diffServers, diffShared, everything } from './diff.ts';
import { GracefulTermination } from './graceful.ts';
import { type InterfaceFacts, interfaceFacts, noFacts, sameFacts } from './interface-facts.ts';
import type { IpvsKernel } from './kernel.ts';
import { readCurrent } from './read.ts';
import type { IpvsSettings } from './settings.ts';
import { ensureStructure } from './structure.ts';

export interface IpvsOptions {
  readonly settings: IpvsSettings;
  readonly kernel: IpvsKernel;
  readonly metrics: Pick<ProxyMetrics, 'iptablesRestoreFailures'>;
  readonly logger: Logger;
  readonly clock: Clock;
  /** Milliseconds from one full sync to the next. */
  readonly fullSyncPeriodMs?: number;
  readonly onClose?: () => Promise<void>;
}

/** Virtual servers done in one go: a whole cluster at once would hold up health checks. */
const keysPerGroup = 200;

/**
 * Writes virtual servers, ipsets, addresses of the device and rules of one family. These do not change all at once: what
 * fails is reported, and everything else is done.
 */
export class IpvsDriver implements Driver<CurrentState> {
  readonly subject = 'the IPVS tables';
  readonly #options: IpvsOptions;
  readonly #label: { readonly ipFamily: string };
  readonly #desired: DesiredState;
  readonly #graceful: GracefulTermination;
  #signals: EngineSignals<CurrentState> | undefined;
  #facts: InterfaceFacts = noFacts;
  /** The rules that were last restored. */
  #rules = '';
  /** A partial sync that failed to restore rules was counted; the full one that follows is the same failure. */
  #isFailureCounted = false;
  /** No full sync has been completed: weights may be those that an earlier run has set. */
  #isInitial = true;

  constructor(options: IpvsOptions) {
    const { settings, kernel, clock, logger } = options;
    this.#options = options;
    this.#label = { ipFamily: settings.family };
    this.#desired = new DesiredState(settings);
    this.#graceful = new GracefulTermination({
      servers: kernel.servers,
      clock,
      logger,
      exclusively: async (work) => this.#signals?.exclusively(work),
    });
  }

  /** Nothing tells when another program changes virtual servers, sets or rules. */
  get fullSyncPeriodMs(): number | undefined {
    return this.#options.fullSyncPeriodMs;
  }

  async writeChanges(
    current: CurrentState,
    { plans, changed, addresses }: WantedChanges,
  ): Promise<Written<CurrentState> | undefined> {
    if (!sameFacts(interfaceFacts(this.#options.settings, addresses), this.#facts)) return undefined;
    const touched = new Touched();
    for (const key of changed) this.#desired.place(key, plans.get(key), touched);
    const { isComplete } = await this.#write(current, touched);
    if (isComplete) return { belief: current, failures: new Map() };
    this.#options.logger.v(2).info('Partial sync incomplete; syncing everything', this.#label);
    return undefined;
  }

  writeAll(wanted: Wanted): FullWrite<CurrentState> {
    const attempt = () =>
      this.#writeAll(wanted).finally(() => {
        this.#isFailureCounted = false;
      });
    return { attempt, remedy: async () => undefined };
  }

  prepareAlone(plan: ServicePlan): void {
    compilePlan(plan, this.#options.settings, this.#facts);
  }

  /** Whatever fails, another program may have changed what it builds on; a full sync finds out. */
  isRefusal(): boolean {
    return true;
  }

  /** Differs from upstream (early-retry), which leaves what failed until something changes or a period ends. */
  isTemporary(): boolean {
    return true;
  }

  watch(signals: EngineSignals<CurrentState>): Closable[] {
    this.#signals = signals;
    return [this.#graceful];
  }

  /** What drains stays drained. */
  async close(): Promise<void> {
    await this.#options.onClose?.();
  }

  async #writeAll({ plans, addresses }: Wanted): Promise<Written<CurrentState>> {
    const { kernel, settings, logger } = this.#options;
    this.#rules = '';
    this.#setFacts(addresses);
    const problems: Error[] = [];
    await ensureStructure(kernel, settings.family, problems);
    await this.#placeAll(plans);
    const current = await readCurrent(kernel, this.#desired, problems);
    const application = await this.#write(current, everything(current, this.#desired));
    const { failures, leftovers } = application;
    problems.push(...application.problems);
    for (const problem of problems) logger.error(problem, 'Sync went on without what failed', this.#label);
    const [problem] = problems;
    // What is known of the kernel is not enough for a partial sync.
    if (problem) return { belief: undefined, failures, retry: problem.message };
    // Differs from upstream (initial-until-complete), where a first sync that fails counts as well.
    if (failures.size === 0) this.#isInitial = false;
    return { belief: current, failures, ...(leftovers > 0 && { retry: 'something stale is left' }) };
  }

  /** Differs from upstream (node-addresses-kept), which takes a failure to list addresses for a node that has none. */
  #setFacts(addresses: readonly string[]): void {
    const facts = interfaceFacts(this.#options.settings, addresses);
    if (sameFacts(facts, this.#facts)) return;
    this.#facts = facts;
    this.#desired.setFacts(facts);
  }

  async #placeAll(plans: Wanted['plans']): Promise<void> {
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

  /** Resolves to the virtual servers that are stale. */
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

  /** Resolves to the reason when the rules cannot be restored. */
  async #restoreRules(): Promise<Error | undefined> {
    const { kernel, metrics, logger, settings } = this.#options;
    const rules = this.#desired.rules();
    if (rules === this.#rules) return undefined;
    this.#rules = '';
    try {
      await kernel.iptables.restore(rules);
    } catch (cause) {
      const error = asError(cause);
      if (!this.#isFailureCounted) metrics.iptablesRestoreFailures.inc({ ip_family: settings.family });
      this.#isFailureCounted = true;
      const lines = linesAround(rules, error.message);
      logger.error(error, 'Failed to restore rules', { ...this.#label, lines });
      return error;
    }
    this.#rules = rules;
    return undefined;
  }
}
