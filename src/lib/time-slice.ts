import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Clock } from './clock.ts';

/** Budget in ms for reports: a change of the rules takes several turns of the event loop, and may wait in each of them. */
export const reportSliceMs = 2;

/**
 * Divides long work into slices, so that timers, watches and health checks wait for one slice at most. Awaiting
 * promises is not enough: a loop whose data is already there never returns to the event loop. Use it as
 * `if (timeSlice.isSpent) await timeSlice.yield();`
 */
export class TimeSlice {
  readonly #clock: Clock;
  readonly #budgetMs: number;
  #startedAt: number;

  constructor(clock: Clock, budgetMs = 8) {
    this.#clock = clock;
    this.#budgetMs = budgetMs;
    this.#startedAt = clock.monotonic();
  }

  /** Cheap enough to ask after every item. */
  get isSpent(): boolean {
    return this.#clock.monotonic() - this.#startedAt >= this.#budgetMs;
  }

  /** Lets the event loop do its other work, then starts the next slice. */
  async yield(): Promise<void> {
    await nextTurn();
    this.#startedAt = this.#clock.monotonic();
  }
}
