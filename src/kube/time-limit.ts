import type { Clock, Timer } from '../lib/clock.ts';
import { TransportError } from './api-error.ts';

/** An abort signal that fires when one of several others does, or after a time. */
export class TimeLimit {
  readonly signal: AbortSignal;
  readonly #timer: Timer;

  constructor(clock: Clock, ms: number, others: readonly (AbortSignal | undefined)[]) {
    const controller = new AbortController();
    this.signal = AbortSignal.any([controller.signal, ...others.filter((other) => other !== undefined)]);
    this.#timer = clock.setTimeout(() => {
      controller.abort(new TransportError(`the answer was not complete after ${ms / 1000} s`));
    }, ms);
  }

  /** Stops the timer; the other signals still count. */
  lift(): void {
    this.#timer.cancel();
  }
}
