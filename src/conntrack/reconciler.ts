import type { Clock, Timer } from '../lib/clock.ts';
import type { Family } from '../model/ip.ts';
import type { Logger } from '../obs/log.ts';
import type { Counter, Histogram } from '../obs/metrics.ts';
import { type Scope, type UDPFlow, type UDPTarget, UDPTargets } from './udp-targets.ts';

/** What to look for in the table, and whom to tell of it. */
export interface Sweep {
  /** Only flows to these places are of interest; all UDP flows when absent. */
  readonly scopes?: readonly Scope[];
  /** May be asked about the same flow more than once. */
  isStale(flow: UDPFlow): boolean;
  /** So many more entries are gone. */
  onDeleted(count: number): void;
}

/** The kernel's conntrack table, one family of it. */
export interface FlowTable {
  /** Deletes stale UDP flows as it finds them; rejects when some may be left. */
  sweep(sweep: Sweep): Promise<void>;
  close(): void;
}

export interface ReconcilerOptions {
  readonly family: Family;
  readonly table: FlowTable;
  /** The addresses of this node, where node ports are answered. */
  readonly ownAddresses: () => Promise<ReadonlySet<string>>;
  /** Both have the label ip_family. */
  readonly duration: Histogram;
  readonly deleted: Counter;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** Up to so many places are looked for one by one, by the kernel; beyond, all UDP flows are looked at here. */
const MAX_SCOPES = 8;
const RETRY_MS = 5000;

/**
 * Deletes UDP flows that go to an endpoint which no longer serves, so that the next datagram finds a new one.
 * Passes run one at a time in the background; a pass that fails is tried again, with everything noted since.
 */
export class ConntrackReconciler {
  readonly #options: ReconcilerOptions;
  readonly #targets = new UDPTargets();
  /** How many of the changes are in effect: flows that contradict a change before that would only come back. */
  #inEffect = 0;
  #running: Promise<void> | undefined;
  #retry: Timer | undefined;
  #isClosed = false;

  constructor(options: ReconcilerOptions) {
    this.#options = options;
  }

  /** A service port is about to change, or (without a target) to go; or it is not UDP. */
  update(key: string, target: UDPTarget | undefined): void {
    this.#targets.update(key, target);
  }

  /** All updates so far are in effect: brings the flows in line with them. Returns at once. */
  reconcile(): void {
    this.#inEffect = this.#targets.changes;
    this.#begin();
  }

  #begin(): void {
    if (this.#isClosed || this.#running || this.#targets.isSettled(this.#inEffect)) return;
    this.#retry?.cancel();
    this.#running = this.#passes();
  }

  /** Waits for a pass under way; the table is closed then. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#retry?.cancel();
    await this.#running;
    this.#options.table.close();
  }

  async #passes(): Promise<void> {
    try {
      while (!this.#targets.isSettled(this.#inEffect) && !this.#isClosed) await this.#pass();
      this.#running = undefined;
    } catch (error) {
      this.#running = undefined;
      const { logger, clock, family } = this.#options;
      logger.error(error, 'Failed to clean up conntrack entries, will try again', { ipFamily: family });
      if (!this.#isClosed) this.#retry = clock.setTimeout(() => this.#begin(), RETRY_MS);
    }
  }

  async #pass(): Promise<void> {
    const { family, duration, deleted, table, clock, logger } = this.#options;
    const started = clock.monotonic();
    const changes = this.#inEffect;
    const scopes = this.#targets.scopes(MAX_SCOPES);
    const own = await this.#options.ownAddresses();
    let total = 0;
    const sweep: Sweep = {
      isStale: (flow) => this.#targets.isStale(flow, (ip) => own.has(ip)),
      onDeleted: (count) => {
        total += count;
        deleted.inc({ ip_family: family }, count);
      },
    };
    await table.sweep(scopes ? { ...sweep, scopes } : sweep);
    this.#targets.settle(changes);
    duration.observe((clock.monotonic() - started) / 1000, { ip_family: family });
    logger.v(4).info('Finished reconciling conntrack entries', { ipFamily: family, entriesDeleted: total });
  }
}
