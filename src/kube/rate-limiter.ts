import type { Clock } from '../lib/clock.ts';
import { sleep } from '../lib/sleep.ts';

const defaultQps = 5;
const defaultBurst = 10;

/** A token bucket: `burst` calls at once, then `qps` per second. */
export class RateLimiter {
  readonly #qps: number;
  readonly #burst: number;
  readonly #clock: Clock;
  #tokens: number;
  #filledAt: number;

  constructor(qps: number, burst: number, clock: Clock) {
    this.#qps = qps;
    this.#burst = burst;
    this.#clock = clock;
    this.#tokens = burst;
    this.#filledAt = clock.monotonic();
  }

  /** Waits for a token, first come, first served; resolves with the milliseconds waited. */
  async take(signal?: AbortSignal): Promise<number> {
    const now = this.#clock.monotonic();
    const gained = ((now - this.#filledAt) / 1000) * this.#qps;
    this.#tokens = Math.min(this.#burst, this.#tokens + gained) - 1;
    this.#filledAt = now;
    if (this.#tokens >= 0) return 0;
    const waitMs = (-this.#tokens / this.#qps) * 1000;
    await sleep(this.#clock, waitMs, signal);
    if (signal?.aborted) {
      this.#tokens++;
      throw signal.reason;
    }
    return waitMs;
  }
}

/** The limiter for a configuration: none for a negative QPS, the defaults for zero. */
export function rateLimiterFor(qps: number, burst: number, clock: Clock): RateLimiter | undefined {
  if (qps < 0) return undefined;
  if (qps === 0) return new RateLimiter(defaultQps, burst > 0 ? burst : defaultBurst, clock);
  if (burst <= 0) {
    throw new Error(
      'burst is required to be greater than 0 when RateLimiter is not set and QPS is set to greater than 0',
    );
  }
  return new RateLimiter(qps, burst, clock);
}
