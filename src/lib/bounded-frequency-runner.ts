import type { Clock, Timer } from './clock.ts';

export interface RunnerIntervals {
  /** Shortest time between the end of a run and the start of the next, in ms. */
  readonly minInterval: number;
  /** After a failed run, retry after this time without a request. */
  readonly retryInterval: number;
  /** Longest time between runs. */
  readonly maxInterval: number;
}

interface RunnerOptions extends RunnerIntervals {
  /** The work; a rejection schedules a retry. */
  readonly work: () => Promise<void>;
  readonly onError: (error: unknown) => void;
  readonly clock: Clock;
}

/**
 * Runs the work on request, one run at a time, with at least `minInterval` between runs. Requests made meanwhile become
 * one run. The work also runs without a request: `retryInterval` after a failure, and `maxInterval` after the last run.
 */
export class BoundedFrequencyRunner {
  readonly #options: RunnerOptions;
  #intervals: RunnerIntervals;
  #started = false;
  #stopped = false;
  #paused = false;
  #requested = false;
  #isUrgent = false;
  #running: Promise<void> | undefined;
  #cooldown: Timer | undefined;
  #nextRun: Timer | undefined;

  constructor(options: RunnerOptions) {
    this.#options = options;
    this.#intervals = checked(options);
  }

  get isStarted(): boolean {
    return this.#started;
  }

  /** Changes the intervals, from the end of the next run on. */
  setIntervals(intervals: RunnerIntervals): void {
    this.#intervals = checked(intervals);
  }

  /** Starts serving requests, including those made before this call. */
  start(): void {
    this.#started = true;
    this.#armNextRun(this.#intervals.maxInterval);
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

  /** Starts no run until `resume`; resolves when a run under way has ended. */
  async pause(): Promise<void> {
    this.#paused = true;
    await this.#running;
  }

  /** Serves requests again, including those made during the pause. */
  resume(): void {
    this.#paused = false;
    this.#runIfDue();
  }

  /** Ignores later requests; resolves when a run under way has ended. */
  async stop(): Promise<void> {
    this.#stopped = true;
    this.#cooldown?.cancel();
    this.#nextRun?.cancel();
    await this.#running;
  }

  #runIfDue(): void {
    const blocked = !this.#started || this.#stopped || this.#paused || this.#running || this.#cooldown;
    if (blocked || !this.#requested) return;
    this.#requested = false;
    this.#isUrgent = false;
    this.#nextRun?.cancel();
    this.#running = this.#run();
  }

  async #run(): Promise<void> {
    const { work, onError, clock } = this.#options;
    let hasFailed = false;
    try {
      await work();
    } catch (error) {
      hasFailed = true;
      onError(error);
    }
    this.#running = undefined;
    if (this.#stopped) return;
    const { minInterval, retryInterval, maxInterval } = this.#intervals;
    this.#armNextRun(hasFailed ? Math.min(retryInterval, maxInterval) : maxInterval);
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

function checked({ minInterval, retryInterval, maxInterval }: RunnerIntervals): RunnerIntervals {
  if (maxInterval < minInterval) {
    throw new RangeError(`maxInterval ${maxInterval} ms is shorter than minInterval ${minInterval} ms`);
  }
  return { minInterval, retryInterval, maxInterval };
}
