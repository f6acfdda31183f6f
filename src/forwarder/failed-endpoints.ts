import type { Clock } from '../lib/clock.ts';
import { RecentMap } from './recent-map.ts';

/** Long enough to cover a client's retries, short enough for an endpoint that comes back. */
const avoidMs = 10_000;
/** A bound, because senders can be forged. A forgotten client meets the failed endpoint once more. */
const maxClients = 4_096;

interface Failures {
  readonly endpoints: Set<string>;
  readonly until: number;
}

/** Endpoints that recently failed a client, by client address: resolvers retry from another port. */
export class FailedEndpoints {
  readonly #clock: Clock;
  readonly #clients = new RecentMap<string, Failures>(maxClients);

  constructor(clock: Clock) {
    this.#clock = clock;
  }

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
