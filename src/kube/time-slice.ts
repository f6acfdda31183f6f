import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Clock } from '../lib/clock.ts';

/**
 * Cuts long work into slices, so that other work on the event loop waits for one slice at most. Promises alone
 * do not help: a loop whose data is already there runs to its end without ever going back to the event loop.
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

  /** Whether the slice is used up; the caller then awaits `rest()`. */
  get spent(): boolean {
    return this.#clock.monotonic() - this.#startedAt >= this.#budgetMs;
  }

  async rest(): Promise<void> {
    await nextTurn();
    this.#startedAt = this.#clock.monotonic();
  }
}
