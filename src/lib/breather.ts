import { setImmediate } from 'node:timers/promises';
import type { Clock } from './clock.ts';

/** How long work may keep other work waiting. */
const stretchMs = 10;

/** Breaks long work into stretches, so that watches, timers and health checks get their turn in between. */
export class Breather {
  readonly #clock: Clock;
  #since: number;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#since = clock.monotonic();
  }

  /** True when it is time to `rest`. Asking is cheap. */
  get isDue(): boolean {
    return this.#clock.monotonic() - this.#since >= stretchMs;
  }

  async rest(): Promise<void> {
    await setImmediate();
    this.#since = this.#clock.monotonic();
  }
}
