import type { Clock, Timer } from '../lib/clock.ts';
import type { Family } from '../model/ip.ts';
import type { Logger } from '../obs/log.ts';
import type { Counter, Histogram } from '../obs/metrics.ts';
import { type Reach, type Scope, type UDPFlow, type UDPTarget, UDPTargets } from './udp-targets.ts';

/** Says which flows to delete. */
export interface Sweep {
  /** Only flows to these frontends and node ports need checking; all UDP flows if absent. */
  readonly scopes?: readonly Scope[];
  /** May be called more than once for the same flow. */
  isStale(flow: UDPFlow): boolean;
  /** `count` more entries were deleted. */
  onDeleted(count: number): void;
}

/** One family of the kernel's conntrack table. */
export interface FlowTable {
  /** Deletes stale UDP flows; rejects when some may be left. */
  sweep(sweep: Sweep): Promise<void>;
  close(): void;
}

interface ReconcilerOptions {
  readonly family: Family;
  readonly table: FlowTable;
  /** The node's addresses. */
  readonly ownAddresses: () => Promise<ReadonlySet<string>>;
  /** Both have the label ip_family. */
  readonly duration: Histogram;
  readonly deleted: Counter;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** Up to this many scopes, the kernel filters flows for each; above, all UDP flows are read and checked here. */
const MAX_SCOPES = 8;
const RETRY_MS = 5000;
/**
 * Flows to an endpoint that left stay for one to two of these, so that answers to requests in flight arrive. Longer would
 * lose more datagrams of clients that go on sending to an endpoint that is gone.
 */
const GRACE_STEP_MS = 500;

/**
 * Deletes UDP flows to endpoints that no longer serve, so that the next datagram gets a new endpoint: at once, or after a
 * grace if the endpoint just left. Passes run one at a time in the background. A failed pass is repeated and then includes
 * later changes.
 */
export class ConntrackReconciler {
  readonly #options: ReconcilerOptions;
  readonly #targets = new UDPTargets();
  /** Number of changes already programmed; sweeping for later ones would let stale flows return. */
  #inEffect = 0;
  #running: Promise<void> | undefined;
  #retry: Timer | undefined;
  #graceStep: Timer | undefined;
  /** Number of changes that were in effect at the last grace step, and at the one before. */
  #inEffectAtStep = 0;
  #graceOver = 0;
  #isClosed = false;

  constructor(options: ReconcilerOptions) {
    this.#options = options;
  }

  /** Notes that a service port is about to change. Without a target it is removed or is not UDP. */
  update(key: string, target: UDPTarget | undefined): void {
    this.#targets.update(key, target);
  }

  /** To be called when all updates so far are programmed. Starts a pass if needed; returns at once. */
  reconcile(): void {
    this.#targets.programmed();
    this.#inEffect = this.#targets.changes;
    this.#begin();
    this.#armGrace();
  }

  /** Ends every grace, waits for the pass that follows or is under way, and closes the table. */
  async close(): Promise<void> {
    this.#graceStep?.cancel();
    this.#retry?.cancel();
    await this.#running;
    this.#graceOver = this.#inEffect;
    if (this.#targets.isGraceOver(this.#graceOver)) this.#begin();
    this.#isClosed = true;
    await this.#running;
    this.#options.table.close();
  }

  get #isPassDue(): boolean {
    return !this.#targets.isSettled(this.#inEffect) || this.#targets.isGraceOver(this.#graceOver);
  }

  #begin(): void {
    if (this.#isClosed || this.#running || !this.#isPassDue) return;
    this.#retry?.cancel();
    this.#running = this.#passes();
  }

  #armGrace(): void {
    if (this.#isClosed || this.#graceStep || !this.#targets.hasDepartures) return;
    this.#graceStep = this.#options.clock.setTimeout(() => {
      this.#graceStep = undefined;
      this.#graceOver = this.#inEffectAtStep;
      this.#inEffectAtStep = this.#inEffect;
      this.#begin();
      this.#armGrace();
    }, GRACE_STEP_MS);
  }

  async #passes(): Promise<void> {
    try {
      while (this.#isPassDue && !this.#isClosed) await this.#pass();
      this.#running = undefined;
    } catch (error) {
      this.#running = undefined;
      const { logger, clock, family } = this.#options;
      logger.error(error, 'Failed to delete stale conntrack entries; retrying', { ipFamily: family });
      if (!this.#isClosed) this.#retry = clock.setTimeout(() => this.#begin(), RETRY_MS);
    }
  }

  async #pass(): Promise<void> {
    const { family, duration, deleted, table, clock, logger } = this.#options;
    const started = clock.monotonic();
    const reach: Reach = { changes: this.#inEffect, graceOver: this.#graceOver };
    const scopes = this.#targets.scopes(MAX_SCOPES, reach);
    const own = await this.#options.ownAddresses();
    let total = 0;
    const sweep: Sweep = {
      isStale: (flow) => this.#targets.isStale(flow, (ip) => own.has(ip), reach),
      onDeleted: (count) => {
        total += count;
        deleted.inc({ ip_family: family }, count);
      },
    };
    await table.sweep(scopes ? { ...sweep, scopes } : sweep);
    this.#targets.settle(reach);
    duration.observe((clock.monotonic() - started) / 1000, { ip_family: family });
    logger.v(4).info('Finished reconciling conntrack entries', { ipFamily: family, entriesDeleted: total });
  }
}
