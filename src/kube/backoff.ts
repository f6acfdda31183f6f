/** How long to wait between attempts. */
export interface BackoffOptions {
  readonly initialMs: number;
  readonly maxMs: number;
  /** Each wait is stretched by a random part of itself, at most this: clients of one server must not move in step. */
  readonly jitter: number;
}

export const defaultBackoff: BackoffOptions = { initialMs: 800, maxMs: 30_000, jitter: 1 };

/** Exponential back-off: every wait is twice the one before, until a reset. */
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
