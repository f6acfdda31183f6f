import type { Clock } from '../lib/clock.ts';
import { RecentMap } from './recent-map.ts';

/** Long enough for a client that asks again, and soon over for an endpoint that comes back. */
const avoidMs = 10_000;
/** Senders can be made up, so only so many are remembered. One that is forgotten fails once more, no worse. */
const maxClients = 4_096;

interface Failures {
  readonly endpoints: Set<string>;
  readonly until: number;
}

/** Which endpoints lately failed a client, whichever port it sent from. */
export class FailedEndpoints {
  readonly #clock: Clock;
  /** By the client's address. */
  readonly #clients = new RecentMap<string, Failures>(maxClients);

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Whether there is nothing to look for. */
  get isEmpty(): boolean {
    return this.#clients.size === 0;
  }

  add(client: string, endpoint: string): void {
    const endpoints = this.of(client) ?? new Set();
    this.#clients.set(client, {
      endpoints: endpoints.add(endpoint),
      until: this.#clock.monotonic() + avoidMs,
    });
  }

  of(client: string): Set<string> | undefined {
    const failures = this.#clients.get(client);
    if (!failures) return undefined;
    if (this.#clock.monotonic() < failures.until) return failures.endpoints;
    this.#clients.delete(client);
    return undefined;
  }
}
