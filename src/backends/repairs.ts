import type { Clock, Timer } from '../lib/clock.ts';
import type { Family } from '../model/ip.ts';
import type { Logger } from '../obs/log.ts';
import type { Counter } from '../obs/metrics.ts';

/** What somebody else did to our rules. */
export interface ForeignChange {
  /** Kinds of object, and how many of each were added or deleted; empty when it cannot be told. */
  readonly objects: ReadonlyMap<string, number>;
  /** The program, by name and process id. */
  readonly by: string;
}

export interface RepairOptions {
  readonly family: Family;
  /** What is changed and repaired, for the log: `table kube-proxy`. */
  readonly subject: string;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Counts repairs. Labels: ip_family, object. */
  readonly repairs: Counter;
  /** Has everything put right. */
  readonly repair: () => void;
}

/** Repairs are made at once as long as there are no more than this many in the period. */
const freeRepairs = 3;
const periodMs = 60_000;
const firstDelayMs = 1_000;
const maxDelayMs = 60_000;

/**
 * Has our rules repaired after foreign changes: at once, but with growing pauses when somebody keeps changing it, so
 * that two programs that both insist do not keep the node busy.
 */
export class Repairs {
  readonly #options: RepairOptions;
  readonly #recent: number[] = [];
  #pending: Timer | undefined;
  #isFighting = false;

  constructor(options: RepairOptions) {
    this.#options = options;
  }

  changed(change: ForeignChange): void {
    const { repairs, family, subject, logger } = this.#options;
    const objects = change.objects.size > 0 ? change.objects : new Map([['unknown', 1]]);
    for (const [object, count] of objects) repairs.inc({ ip_family: family, object }, count);
    const delayMs = this.#delay();
    if (!this.#isFighting) {
      logger.info(`${capitalised(subject)} was changed by another program; repairing`, {
        ip_family: family,
        by: change.by,
        changes: [...objects].map(([object, count]) => `${object}: ${count}`).join(', '),
      });
    }
    if (this.#pending) return;
    if (delayMs === 0) this.#repair();
    else this.#pending = this.#options.clock.setTimeout(() => this.#repair(), delayMs);
  }

  close(): void {
    this.#pending?.cancel();
  }

  /** Milliseconds to wait; notes when it begins to look like a fight, and says so once. */
  #delay(): number {
    const { clock, logger, family, subject } = this.#options;
    const now = clock.monotonic();
    while ((this.#recent[0] ?? now) < now - periodMs) this.#recent.shift();
    const excess = this.#recent.length - freeRepairs;
    if (excess < 0) {
      this.#isFighting = false;
      return 0;
    }
    if (!this.#isFighting) {
      this.#isFighting = true;
      logger.info(`Another program keeps changing ${subject}; repairs are slowed down`, {
        ip_family: family,
      });
    }
    return Math.min(maxDelayMs, firstDelayMs * 2 ** excess);
  }

  #repair(): void {
    this.#pending = undefined;
    this.#recent.push(this.#options.clock.monotonic());
    this.#options.repair();
  }
}

function capitalised(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
