/** How long to wait between attempts. */
export interface BackoffOptions {
  readonly initialMs: number;
  readonly maxMs: number;
  /** Each wait is lengthened by a random share of itself up to this, so that clients do not retry in step. */
  readonly jitter: number;
}

/** Exponential back-off: each wait is twice the one before, up to the maximum, until a reset. */
export class Backoff {
  readonly #options: BackoffOptions;
  readonly #random: () => number;
  #nextMs: number;

  constructor(options: BackoffOptions, random: () => number) {
    this.#options = options;
    this.#random = random;
    this.#nextMs = options.initialMs;
  }

  /** The next wait in milliseconds. */
  next(): number {
    const base = this.#nextMs;
    this.#nextMs = Math.min(this.#options.maxMs, base * 2);
    return base * (1 + this.#options.jitter * this.#random());
  }

  reset(): void {
    this.#nextMs = this.#options.initialMs;
  }
}
