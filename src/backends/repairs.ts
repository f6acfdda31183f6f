import type { Clock, Timer } from '../lib/clock.ts';
import type { Family } from '../model/ip.ts';
import type { Logger } from '../obs/log.ts';
import type { Counter } from '../obs/metrics.ts';
import type { Condition } from './backend.ts';

/** What another program did to what we wrote. */
export interface ForeignChange {
  /** Kinds of object, and how many of each were added or deleted; empty when that is not known. */
  readonly objects: ReadonlyMap<string, number>;
  /** The program, by name and process id. */
  readonly by: string;
  /** Parts that may be damaged besides rules, such as sets of a table; absent when anything may be. */
  readonly suspects?: ReadonlySet<string>;
}

export interface RepairOptions {
  readonly family: Family;
  /** What is changed and repaired, for the log: `table kube-proxy`. */
  readonly subject: string;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Counts repairs. Labels: ip_family, object. */
  readonly repairs: Counter;
  /** Begins a repair. */
  readonly repair: () => void;
}

/** Repairs are made at once as long as there are no more than this many in the period. */
const freeRepairs = 3;
const periodMs = 60_000;
const firstDelayMs = 1_000;
const maxDelayMs = 60_000;

/**
 * Begins a repair after a change by another program: at once, but after growing pauses when the changes go on, so that
 * two programs that both insist do not keep the node busy.
 */
export class Repairs {
  readonly #options: RepairOptions;
  readonly #recent: number[] = [];
  #timer: Timer | undefined;
  #pending: Condition['repair'];
  #isFighting = false;

  constructor(options: RepairOptions) {
    this.#options = options;
  }

  /** The repair that waits for the end of a pause. */
  get pending(): Condition['repair'] {
    return this.#pending;
  }

  changed(change: ForeignChange): void {
    const { repairs, family, subject, logger, clock } = this.#options;
    const { by } = change;
    const objects = change.objects.size > 0 ? change.objects : new Map([['unknown', 1]]);
    for (const [object, count] of objects) repairs.inc({ ip_family: family, object }, count);
    const changes = [...objects].map(([object, count]) => `${object}: ${count}`).join(', ');
    const delayMs = this.#delay();
    if (!this.#isFighting) {
      const details = { ipFamily: family, by, changes };
      logger.info(`${capitalised(subject)} was changed by another program; repairing`, details);
    }
    if (this.#pending) {
      this.#pending = { ...this.#pending, by, changes };
    } else if (delayMs === 0) {
      this.#repair();
    } else {
      const since = clock.now();
      this.#pending = { since, dueAt: since + delayMs, by, changes };
      this.#timer = clock.setTimeout(() => this.#repair(), delayMs);
    }
  }

  close(): void {
    this.#timer?.cancel();
    this.#pending = undefined;
  }

  /** Returns how many milliseconds to wait. When the changes begin to look like a fight, logs that once. */
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
        ipFamily: family,
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
