import type { Backoff } from '../lib/backoff.ts';
import type { Clock } from '../lib/clock.ts';

/**
 * Chooses how the next list of one resource is made: streamed, as the beginning of a watch, or in pages. If streaming is
 * enabled, the server may still be unable to do it, and some find that out only after they accepted the request.
 * So a failure of a streamed list leads to a list in pages, at once unless it may pass. Later lists are streamed again
 * after a pause, which grows with each failure until a streamed list succeeds.
 */
export class ListMethod {
  readonly #isEnabled: boolean;
  readonly #pauses: Backoff;
  readonly #clock: Clock;
  #pausedUntil = 0;
  #unanswered = 0;
  #pagesNext = false;

  constructor(isEnabled: boolean, pauses: Backoff, clock: Clock) {
    this.#isEnabled = isEnabled;
    this.#pauses = pauses;
    this.#clock = clock;
  }

  /** Whether to stream the next list. */
  get streams(): boolean {
    return this.#isEnabled && !this.#pagesNext && this.#clock.monotonic() >= this.#pausedUntil;
  }

  streamCompleted(): void {
    this.#unanswered = 0;
    this.#pauses.reset();
  }

  /** The server refused a streamed list or broke it off. Returns for how many ms lists come in pages. */
  streamFailed(): number {
    const pause = this.#pauses.next();
    this.#pausedUntil = this.#clock.monotonic() + pause;
    return pause;
  }

  /**
   * The request for a streamed list got no answer, or one that is not about streaming. After `limit` of them in a row, the
   * next list comes in pages.
   */
  streamUnanswered(limit: number): void {
    this.#unanswered++;
    this.#pagesNext = this.#unanswered >= limit;
  }

  pagesTried(): void {
    this.#unanswered = 0;
    this.#pagesNext = false;
  }
}
