import type { Leftover } from '../backends/leftovers.ts';
import type { Clock } from '../lib/clock.ts';
import type { Problem } from '../model/problem.ts';
import { type Logger, silentLogger } from '../obs/log.ts';
import { leftoverSummary } from './leftover-text.ts';

export interface TakeOverOptions {
  /** Removes what other modes left, logs that, and returns what is still there. */
  remove(logger: Logger): Promise<readonly Leftover[]>;
  /** Called once, when something is still there after the first attempt. */
  announce(note: string): void;
  readonly clock: Clock;
  readonly logger: Logger;
}

const retryMs = 60_000;

/** Removes what other modes left. While something is still there, that is a problem, and it tries again every minute. */
export class TakeOver {
  readonly #options: TakeOverOptions;
  #left: readonly Leftover[] = [];
  #since = 0;

  constructor(options: TakeOverOptions) {
    this.#options = options;
  }

  async run(): Promise<void> {
    const { remove, announce, clock, logger } = this.#options;
    this.#left = await remove(logger);
    this.#since = clock.now();
    const [problem] = this.problems();
    if (!problem) return;
    announce(problem.text);
    this.#retryLater();
  }

  problems(): readonly Problem[] {
    if (this.#left.length === 0) return [];
    const text = `rules that another mode left are still there: ${leftoverSummary(this.#left)}`;
    return [{ kind: 'LeftoverRules', since: this.#since, isOutage: false, text }];
  }

  #retryLater(): void {
    this.#options.clock.setTimeout(() => void this.#retry(), retryMs);
  }

  /** Logs only the end: the first attempt said what is wrong. */
  async #retry(): Promise<void> {
    const { remove, logger } = this.#options;
    this.#left = await remove(silentLogger);
    if (this.#left.length > 0) this.#retryLater();
    else logger.info('Rules that another mode left are gone');
  }
}
