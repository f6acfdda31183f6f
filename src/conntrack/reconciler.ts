import type { Clock, Timer } from '../lib/clock.ts';
import type { Family } from '../model/ip.ts';
import type { Logger } from '../obs/log.ts';
import type { Counter, Histogram } from '../obs/metrics.ts';
import { type UDPFlow, type UDPTarget, UDPTargets } from './udp-targets.ts';

export interface FlowVisitor<F> {
  flow(flow: F): void;
  /** The table changed under the reader, who begins again: flows will come once more. */
  restart(): void;
}

/** The kernel's conntrack table, one family of it. */
export interface FlowTable<F extends UDPFlow = UDPFlow> {
  /** Hands over every UDP flow as it is read; nothing is kept. */
  udpFlows(visitor: FlowVisitor<F>): Promise<void>;
  /** Deletes the flows; resolves with how many were there. */
  remove(flows: readonly F[]): Promise<number>;
}

export interface ReconcilerOptions<F extends UDPFlow> {
  readonly family: Family;
  readonly table: FlowTable<F>;
  /** The addresses of this node, where node ports are answered. */
  readonly ownAddresses: () => Promise<ReadonlySet<string>>;
  /** Both have the label ip_family. */
  readonly duration: Histogram;
  readonly deleted: Counter;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** Stale flows held in memory at once; the table is read again for the rest. */
const MAX_HELD = 10_000;
/** Ends a pass that somebody else keeps refilling the table under; a full table takes a fraction of it. */
const MAX_ROUNDS = 1000;
const RETRY_MS = 5000;

/**
 * Deletes UDP flows that go to an endpoint which no longer serves, so that the next datagram finds a new one.
 * Passes run one at a time in the background; a pass that fails is tried again, with everything noted since.
 */
export class ConntrackReconciler<F extends UDPFlow> {
  readonly #options: ReconcilerOptions<F>;
  readonly #targets = new UDPTargets();
  #running: Promise<void> | undefined;
  #retry: Timer | undefined;
  #isClosed = false;

  constructor(options: ReconcilerOptions<F>) {
    this.#options = options;
  }

  /** A service port changed, or (without a target) is gone or is not UDP. */
  update(key: string, target: UDPTarget | undefined): void {
    this.#targets.update(key, target);
  }

  /** Brings the flows in line with all updates so far. Returns at once. */
  reconcile(): void {
    if (this.#isClosed || this.#running || this.#targets.isSettled) return;
    this.#retry?.cancel();
    this.#running = this.#passes();
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#retry?.cancel();
    await this.#running;
  }

  async #passes(): Promise<void> {
    try {
      while (!this.#targets.isSettled && !this.#isClosed) await this.#pass();
      this.#running = undefined;
    } catch (error) {
      this.#running = undefined;
      const { logger, clock, family } = this.#options;
      logger.error(error, 'Failed to clean up conntrack entries, will try again', { ipFamily: family });
      if (!this.#isClosed) this.#retry = clock.setTimeout(() => this.reconcile(), RETRY_MS);
    }
  }

  async #pass(): Promise<void> {
    const { family, duration, deleted, clock, logger } = this.#options;
    const started = clock.monotonic();
    const changes = this.#targets.changes;
    let total = 0;
    for (let round = 0; round < MAX_ROUNDS; round++) {
      const stale = await this.#findStale();
      total += await this.#options.table.remove(stale);
      if (stale.length < MAX_HELD) break;
    }
    this.#targets.settle(changes);
    duration.observe((clock.monotonic() - started) / 1000, { ip_family: family });
    deleted.inc({ ip_family: family }, total);
    logger.v(4).info('Finished reconciling conntrack entries', { ipFamily: family, entriesDeleted: total });
  }

  async #findStale(): Promise<F[]> {
    const own = await this.#options.ownAddresses();
    const isOwn = (ip: string) => own.has(ip);
    const stale: F[] = [];
    await this.#options.table.udpFlows({
      flow: (flow) => {
        if (stale.length < MAX_HELD && this.#targets.isStale(flow, isOwn)) stale.push(flow);
      },
      restart: () => {
        stale.length = 0;
      },
    });
    return stale;
  }
}
