import type { Clock, Timer } from './clock.ts';

interface RunnerOptions {
  /** The work; a rejection schedules a retry. */
  readonly work: () => Promise<void>;
  /** Shortest time between the end of a run and the start of the next, in ms. */
  readonly minInterval: number;
  /** After a failed run, retry after this time without a request. */
  readonly retryInterval: number;
  /** Longest time between runs. */
  readonly maxInterval: number;
  readonly onError: (error: unknown) => void;
  readonly clock: Clock;
}

/**
 * Runs the work on request, one run at a time, with at least `minInterval` between runs. Requests made meanwhile become
 * one run. The work also runs without a request: `retryInterval` after a failure, and `maxInterval` after the last run.
 */
export class BoundedFrequencyRunner {
  readonly #options: RunnerOptions;
  #started = false;
  #stopped = false;
  #requested = false;
  #isUrgent = false;
  #running: Promise<void> | undefined;
  #cooldown: Timer | undefined;
  #nextRun: Timer | undefined;

  constructor(options: RunnerOptions) {
    if (options.maxInterval < options.minInterval) {
      throw new RangeError(
        `maxInterval ${options.maxInterval} ms is shorter than minInterval ${options.minInterval} ms`,
      );
    }
    this.#options = options;
  }

  /** Starts serving requests, including those made before this call. */
  start(): void {
    this.#started = true;
    this.#armNextRun(this.#options.maxInterval);
    this.#runIfDue();
  }

  /** Requests a run. */
  request(): void {
    this.#requested = true;
    this.#runIfDue();
  }

  /** Requests a run without waiting for the minimum interval. For repairs: the caller limits how often. */
  requestNow(): void {
    this.#isUrgent = true;
    this.#endCooldown();
    this.request();
  }

  /** Ignores later requests; resolves when a run under way has ended. */
  async stop(): Promise<void> {
    this.#stopped = true;
    this.#cooldown?.cancel();
    this.#nextRun?.cancel();
    await this.#running;
  }

  #runIfDue(): void {
    const blocked = !this.#started || this.#stopped || this.#running || this.#cooldown;
    if (blocked || !this.#requested) return;
    this.#requested = false;
    this.#isUrgent = false;
    this.#nextRun?.cancel();
    this.#running = this.#run();
  }

  async #run(): Promise<void> {
    const { work, minInterval, retryInterval, maxInterval, onError, clock } = this.#options;
    let next = maxInterval;
    try {
      await work();
    } catch (error) {
      next = Math.min(retryInterval, maxInterval);
      onError(error);
    }
    this.#running = undefined;
    if (this.#stopped) return;
    this.#armNextRun(next);
    if (this.#isUrgent) this.#runIfDue();
    else
      this.#cooldown = clock.setTimeout(() => {
        this.#endCooldown();
        this.#runIfDue();
      }, minInterval);
  }

  #endCooldown(): void {
    this.#cooldown?.cancel();
    this.#cooldown = undefined;
  }

  #armNextRun(ms: number): void {
    this.#nextRun = this.#options.clock.setTimeout(() => this.request(), ms);
  }
}
