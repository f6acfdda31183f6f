import { type Clock, wallTimeOf } from '../lib/clock.ts';
import { messageOf } from '../lib/thrown.ts';
import type { ResourceName } from '../model/objects.ts';
import type { WatchStatus } from '../model/source-status.ts';
import { IdleError } from './api-error.ts';

/**
 * A watch that ends sooner than this has failed, unless it brought objects. Then the next one begins when this time is
 * over.
 */
export const shortWatchMs = 1000;
/** A watch that has not been connected for this long is broken. Longer than a streamed list may be silent. */
const brokenAfterMs = 15_000;

/** Keeps what is known of the connection of one watch. The reflector reports each step; `status` may be asked any time. */
export class WatchState {
  readonly #resource: ResourceName;
  readonly #clock: Clock;
  /** All times are monotonic. All changes until then are known; for a new watch, its beginning. */
  #currentUntil: number;
  #lastEvent: number | undefined;
  /** When the server accepted the current watch; undefined without one. */
  #openedAt: number | undefined;
  #hasEvents = false;
  #reason: string | undefined;

  constructor(resource: ResourceName, clock: Clock) {
    this.#resource = resource;
    this.#clock = clock;
    this.#currentUntil = clock.monotonic();
  }

  /** A list is complete. */
  listed(): void {
    this.#currentUntil = this.#clock.monotonic();
  }

  /** The server accepted a watch from a known version, or ended the list that begins one. */
  opened(): void {
    this.#openedAt = this.#clock.monotonic();
    this.#hasEvents = false;
  }

  /** Objects or a bookmark arrived, in a list or a watch. */
  received(): void {
    this.#lastEvent = this.#clock.monotonic();
    this.#hasEvents = true;
  }

  /** The attempt to list and watch ended. */
  ended(error: unknown): void {
    if (this.#isConnected) {
      const now = this.#clock.monotonic();
      // After silence nobody knows when the connection was lost.
      const lastSign = Math.max(this.#openedAt ?? 0, this.#lastEvent ?? 0);
      this.#currentUntil = error instanceof IdleError ? lastSign : now;
      this.#reason = undefined;
    }
    this.#openedAt = undefined;
  }

  /** The attempt failed, and the next one has to wait. */
  failed(error: unknown): void {
    this.#reason = messageOf(error);
  }

  status(): WatchStatus {
    const isConnected = this.#isConnected;
    return {
      resource: this.#resource,
      state: isConnected ? 'connected' : this.#isBroken ? 'broken' : 'connecting',
      since: wallTimeOf(this.#clock, isConnected ? (this.#openedAt ?? 0) : this.#currentUntil),
      reason: isConnected ? undefined : this.#reason,
      lastEvent: this.#lastEvent === undefined ? undefined : wallTimeOf(this.#clock, this.#lastEvent),
    };
  }

  /** A server may accept every watch and close it at once; so only an event or some time proves a connection. */
  get #isConnected(): boolean {
    if (this.#openedAt === undefined) return false;
    return this.#hasEvents || this.#clock.monotonic() - this.#openedAt >= shortWatchMs;
  }

  get #isBroken(): boolean {
    // A long list is no failure while it arrives.
    const isListing = this.#reason === undefined && this.#lastEvent !== undefined;
    const lastSign = isListing ? Math.max(this.#currentUntil, this.#lastEvent ?? 0) : this.#currentUntil;
    return this.#clock.monotonic() - lastSign >= brokenAfterMs;
  }
}
