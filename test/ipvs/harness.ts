import type { SyncResult } from '../../src/backends/backend.ts';
import { SyncEngine } from '../../src/backends/engine.ts';
import type { CurrentState } from '../../src/backends/ipvs/current.ts';
import { IpvsDriver, type IpvsOptions } from '../../src/backends/ipvs/driver.ts';
import type { IpvsSettings } from '../../src/backends/ipvs/settings.ts';
import { nodePortAddresses } from '../../src/model/node-port-addresses.ts';
import type { ServicePlan } from '../../src/plan/service-plan.ts';
import { plansByKey } from '../cluster/plans.ts';
import { FakeClock } from '../fake-clock.ts';
import { LogRecorder } from '../log-recorder.ts';
import { repairParts } from '../repair-parts.ts';
import { FakeKernel } from './fake-kernel.ts';

export const settings: IpvsSettings = {
  family: 'IPv4',
  scheduler: 'rr',
  excludeCIDRs: [],
  masqueradeBit: 14,
  masqueradeAll: false,
  localDetector: { kind: 'cidr', cidr: '10.244.0.0/16' },
  nodePortAddresses: nodePortAddresses('IPv4', []),
  nodeIP: '192.0.2.5',
};

export const retryMs = 30_000;

/** An engine in ipvs mode that requests syncs with `requestSync`. It lists addresses but does not watch them. */
export function ipvsEngine(
  options: IpvsOptions,
  requestSync: () => void,
  retry = retryMs,
): SyncEngine<CurrentState> {
  const { settings, kernel, logger, clock } = options;
  return new SyncEngine({
    family: settings.family,
    driver: new IpvsDriver(options),
    addresses: { source: { list: () => kernel.nodeAddresses(), watch: () => ({ close() {} }) } },
    retryMs: retry,
    ...repairParts(clock),
    logger,
    clock,
    requestSync,
  });
}

/** A backend on a kernel in memory. */
export class Node {
  readonly fake: FakeKernel;
  readonly clock = new FakeClock();
  readonly log = new LogRecorder();
  readonly backend: SyncEngine<CurrentState>;
  restoreFailures = 0;
  requests = 0;
  #plans = new Map<string, ServicePlan>();

  constructor(overrides: Partial<IpvsSettings> = {}, fake = new FakeKernel(), retry = retryMs) {
    this.fake = fake;
    this.backend = ipvsEngine(
      {
        settings: { ...settings, ...overrides },
        kernel: fake.kernel,
        metrics: { iptablesRestoreFailures: { inc: () => void this.restoreFailures++ } },
        logger: this.log,
        clock: this.clock,
      },
      () => void this.requests++,
      retry,
    );
  }

  /** Syncs everything to exactly these plans. */
  full(...plans: readonly ServicePlan[]): Promise<SyncResult> {
    this.#plans = plansByKey(...plans);
    return this.#sync('all');
  }

  /** Adds or replaces these plans with a partial sync. */
  change(...plans: readonly ServicePlan[]): Promise<SyncResult> {
    return this.#change(plansByKey(...this.#plans.values(), ...plans), plans);
  }

  /** Removes these plans with a partial sync. */
  remove(...plans: readonly ServicePlan[]): Promise<SyncResult> {
    const removed = new Set(plans.map(({ port }) => port.key));
    return this.#change(
      plansByKey(...[...this.#plans.values()].filter((plan) => !removed.has(plan.port.key))),
      plans,
    );
  }

  /** As the planner does: a plan that loses or regains an address because of the change counts as changed, too. */
  #change(plans: Map<string, ServicePlan>, named: readonly ServicePlan[]): Promise<SyncResult> {
    const before = this.#plans;
    this.#plans = plans;
    const others = [...plans].filter(([key, plan]) => before.get(key) !== plan).map(([key]) => key);
    return this.#sync(new Set([...named.map(({ port }) => port.key), ...others]));
  }

  #sync(changed: ReadonlySet<string> | 'all'): Promise<SyncResult> {
    return this.backend.sync({ plans: this.#plans, changed, serviceCIDRs: [], totalEndpoints: 0 });
  }
}
