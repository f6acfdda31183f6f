import type { Clock, Timer } from '../../lib/clock.ts';

/** Has what failed tried again after a while; asking twice makes it no sooner. */
export class Retry {
  readonly #clock: Clock;
  readonly #ms: number;
  readonly #run: () => void;
  #timer: Timer | undefined;

  constructor(clock: Clock, ms: number, run: () => void) {
    this.#clock = clock;
    this.#ms = ms;
    this.#run = run;
  }

  schedule(): void {
    this.#timer ??= this.#clock.setTimeout(() => {
      this.#timer = undefined;
      this.#run();
    }, this.#ms);
  }

  cancel(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
  }
}
