import { type Clock, type Timer, wallTimeOf } from '../lib/clock.ts';
import type { Condition } from './backend.ts';

/** Retrying any faster would only keep a busy kernel busy. */
const minRetryMs = 1_000;
const maxRetryMs = 60_000;

/** Runs `run` after a pause that doubles with every failure in a row: from one second, or `baseMs`, to a minute. */
export class Retry {
  readonly #clock: Clock;
  readonly #baseMs: number;
  readonly #run: () => void;
  #failures = 0;
  #timer: Timer | undefined;
  /** By the monotonic clock. */
  #pending: { readonly dueAt: number; readonly reason: string } | undefined;

  constructor(clock: Clock, baseMs: number, run: () => void) {
    this.#clock = clock;
    this.#baseMs = baseMs;
    this.#run = run;
  }

  /** When the next one is due, and why; undefined when none is. */
  get pending(): Condition['retry'] {
    return this.#pending && { ...this.#pending, dueAt: wallTimeOf(this.#clock, this.#pending.dueAt) };
  }

  /** Counts a failure and schedules a retry, in place of one that is pending. */
  schedule(reason: string): void {
    this.cancel();
    const delay = Math.max(this.#baseMs, minRetryMs) * 2 ** Math.min(this.#failures++, 6);
    const ms = Math.min(delay, Math.max(this.#baseMs, maxRetryMs));
    this.#pending = { dueAt: this.#clock.monotonic() + ms, reason };
    this.#timer = this.#clock.setTimeout(() => {
      this.#pending = undefined;
      this.#run();
    }, ms);
  }

  /** Nothing is left to retry: the next pause is short again. */
  reset(): void {
    this.cancel();
    this.#failures = 0;
  }

  cancel(): void {
    this.#timer?.cancel();
    this.#pending = undefined;
  }
}
