import type { Clock, Timer } from '../lib/clock.ts';
import type { Family } from '../model/ip.ts';
import type { Logger } from '../obs/log.ts';
import type { Condition } from './backend.ts';
import { repairShare } from './repair-budget.ts';

export interface FightLogOptions {
  readonly family: Family;
  /** What is changed and repaired: `table kube-proxy`. */
  readonly subject: string;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** More changes than this in a period are a fight: two programs both insist. */
const ordinaryChanges = 3;
const periodMs = 10_000;
/** A pause of this length has a log line of its own. */
const longPauseMs = 1_000;

interface Sums {
  changes: number;
  repairs: number;
  cpuMs: number;
  wrongMs: number;
}

/**
 * Logs changes by other programs and their repair. A single change has a line of its own. In a fight there is one line
 * when it begins, a summary every ten seconds, and one when nothing has changed for ten seconds.
 */
export class FightLog {
  readonly #options: FightLogOptions;
  /** Times of the latest changes, in monotonic milliseconds. */
  readonly #recent: number[] = [];
  #by = '';
  #what = '';
  /** When the fight began, in milliseconds since the epoch; undefined while there is none. */
  #since: number | undefined;
  /** Of the fight, and since the last summary. */
  #total: Sums = noSums();
  #latest: Sums = noSums();
  #timer: Timer | undefined;

  constructor(options: FightLogOptions) {
    this.#options = options;
  }

  /** The fight that goes on, and the program that made the latest change. */
  get fight(): Condition['fight'] {
    return this.#since === undefined ? undefined : { since: this.#since, by: this.#by };
  }

  changed(by: string, what: string): void {
    const now = this.#options.clock.monotonic();
    this.#by = by;
    this.#what = what;
    while ((this.#recent[0] ?? now) < now - periodMs) this.#recent.shift();
    if (this.#recent.length > ordinaryChanges) this.#recent.shift();
    this.#recent.push(now);
    this.#add({ changes: 1 });
    if (this.#since !== undefined) return;
    if (this.#recent.length > ordinaryChanges) this.#begin();
    else this.#info(`${capitalised(this.#options.subject)} was changed by another program; repairing`);
  }

  /** A repair waits. */
  paused(ms: number): void {
    if (ms < longPauseMs) return;
    const pause = `${(ms / 1000).toFixed(1)}s`;
    this.#info(`Rules are wrong until ${this.#options.subject} is repaired after a pause`, { pause });
  }

  repaired(cpuMs: number, wrongMs: number): void {
    this.#add({ repairs: 1, cpuMs, wrongMs });
  }

  close(): void {
    this.#timer?.cancel();
  }

  #begin(): void {
    const share = `${repairShare * 100} % of a core`;
    this.#since = this.#options.clock.now();
    // The change that begins the fight; earlier ones and their repairs have lines of their own.
    this.#total = { ...noSums(), changes: 1 };
    this.#latest = { ...noSums(), changes: 1 };
    this.#info(`Another program keeps changing ${this.#options.subject}; repairs take at most ${share}`);
    this.#armSummary();
  }

  #armSummary(): void {
    this.#timer = this.#options.clock.setTimeout(() => this.#summarise(), periodMs);
  }

  #summarise(): void {
    const { subject } = this.#options;
    const latest = this.#latest;
    this.#latest = noSums();
    if (latest.changes > 0) {
      this.#info(`Another program still changes ${subject}; repaired`, detailsOf(latest));
      this.#armSummary();
    } else {
      this.#info(`No other program has changed ${subject} for 10 s`, detailsOf(this.#total));
      this.#since = undefined;
    }
  }

  #add(more: Partial<Sums>): void {
    for (const sums of [this.#total, this.#latest]) {
      sums.changes += more.changes ?? 0;
      sums.repairs += more.repairs ?? 0;
      sums.cpuMs += more.cpuMs ?? 0;
      sums.wrongMs += more.wrongMs ?? 0;
    }
  }

  #info(message: string, details: Record<string, unknown> = {}): void {
    const { logger, family } = this.#options;
    logger.info(message, { ipFamily: family, by: this.#by, changes: this.#what, ...details });
  }
}

function noSums(): Sums {
  return { changes: 0, repairs: 0, cpuMs: 0, wrongMs: 0 };
}

function detailsOf({ changes, repairs, cpuMs, wrongMs }: Sums): Record<string, unknown> {
  return {
    times: changes,
    repairs,
    cpu: `${(cpuMs / 1000).toFixed(2)}s`,
    wrong: `${(wrongMs / 1000).toFixed(1)}s`,
  };
}

function capitalised(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
