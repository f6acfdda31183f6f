import type { Clock } from '../lib/clock.ts';
import type { Backoff } from './backoff.ts';

/**
 * Chooses how the next list of one resource is made: streamed, as the beginning of a watch, or in pages. Streaming is
 * cheaper for the server, but not every server can do it, and some find that out only after they accepted the request.
 * So every failure of a streamed list leads to a list in pages. Later lists are streamed again after a pause, which grows
 * with each failure until a streamed list succeeds.
 */
export class ListMethod {
  readonly #isEnabled: boolean;
  readonly #pauses: Backoff;
  readonly #clock: Clock;
  #pausedUntil = 0;
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
    this.#pauses.reset();
  }

  /** The server refused a streamed list or broke it off. Returns for how many ms lists come in pages. */
  streamFailed(): number {
    const pause = this.#pauses.next();
    this.#pausedUntil = this.#clock.monotonic() + pause;
    return pause;
  }

  /** The request for a streamed list got no answer, or one that is not about streaming: the next list comes in pages. */
  streamUnanswered(): void {
    this.#pagesNext = true;
  }

  pagesTried(): void {
    this.#pagesNext = false;
  }
}
