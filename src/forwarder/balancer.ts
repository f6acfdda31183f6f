import type { Clock } from '../lib/clock.ts';
import { RecentMap } from './recent-map.ts';

export interface BalancerOptions {
  readonly clock: Clock;
  /** A number in [0, 1). */
  readonly random: () => number;
}

/** How a new connection gets its endpoint, besides client affinity. */
export type Choice =
  | 'round-robin'
  /** The endpoint with the fewest open connections; among equals, the next in turn. */
  | 'least-connections'
  /** With affinity, all clients share one remembered choice: on loopback clients cannot be told apart. */
  | 'random';

/** How connections of a service are spread. */
export interface Distribution {
  readonly endpoints: readonly string[];
  /** 0 = none. */
  readonly affinitySeconds: number;
  readonly choice: Choice;
}

/** A request for an endpoint. */
export interface Call {
  /** Returns the client's address without port; called only for services with affinity. */
  readonly client: () => string;
  /** The last endpoint did not answer: forget the client's remembered endpoint. */
  readonly reset: boolean;
  /** Returns the number of open connections of an endpoint. */
  readonly load: (endpoint: string) => number;
  /** Endpoints to skip while there are others, even if the client is bound to one of them. */
  readonly avoid?: ReadonlySet<string>;
}

/** The service has no endpoint, or is unknown. */
export class NoEndpointError extends Error {
  constructor(key: string, what: 'missing service entry' | 'missing endpoints') {
    super(`${key}: ${what}`);
    this.name = 'NoEndpointError';
  }
}

/** Three hours, for affinity without a timeout. */
const defaultAffinitySeconds = 10_800;

/**
 * Clients remembered per service, about ten megabytes. The limit matters because one host can call from any number of
 * IPv6 addresses, each remembered for hours.
 */
export const maxRememberedClients = 1 << 16;

interface Remembered {
  readonly endpoint: string;
  usedAt: number;
}

interface Entry {
  /** False while only the endpoints are known: they may come before the service and stay after it. */
  hasService: boolean;
  list: readonly string[];
  index: number;
  choice: Choice;
  affinitySeconds: number;
  /** By client address. */
  readonly clients: RecentMap<string, Remembered>;
}

/**
 * Chooses an endpoint (`ip:port`) for each new connection of a service. When an endpoint is removed, clients bound to
 * it are forgotten.
 */
export class Balancer {
  readonly #options: BalancerOptions;
  readonly #entries = new Map<string, Entry>();

  constructor(options: BalancerOptions) {
    this.#options = options;
  }

  /** Adds or changes a service. With affinity, 0 seconds mean the default. */
  setService(
    key: string,
    affinity: 'None' | 'ClientIP',
    seconds: number,
    choice: Choice = 'round-robin',
  ): void {
    const entry = this.#entry(key);
    const next = affinity === 'None' ? 0 : seconds || defaultAffinitySeconds;
    const isOtherMemory = choice === 'random' && next !== entry.affinitySeconds;
    if (next === 0 || isOtherMemory) entry.clients.clear();
    entry.hasService = true;
    entry.affinitySeconds = next;
    entry.choice = choice;
  }

  /** Keeps the endpoints: the service may come back before they change. */
  deleteService(key: string): void {
    const entry = this.#entries.get(key);
    if (!entry) return;
    entry.hasService = false;
    entry.clients.clear();
    if (entry.list.length === 0) this.#entries.delete(key);
  }

  /** Replaces the endpoints. The same endpoints in another order change nothing. */
  setEndpoints(key: string, endpoints: readonly string[]): void {
    const entry = this.#entry(key);
    if (isSameMultiset(entry.list, endpoints)) return;
    const present = new Set(endpoints);
    for (const [client, { endpoint }] of entry.clients)
      if (!present.has(endpoint)) entry.clients.delete(client);
    entry.list = this.#shuffled(endpoints);
    entry.index = 0;
    if (!entry.hasService && entry.list.length === 0) this.#entries.delete(key);
  }

  /** Chooses the endpoint for a new connection; throws NoEndpointError. */
  nextEndpoint(key: string, call: Call): string {
    const entry = this.#entries.get(key);
    if (!entry) throw new NoEndpointError(key, 'missing service entry');
    if (entry.list.length === 0) throw new NoEndpointError(key, 'missing endpoints');
    if (entry.affinitySeconds === 0) return this.#choose(entry, call);
    const client = entry.choice === 'random' ? '' : call.client();
    const now = this.#options.clock.monotonic();
    const remembered = entry.clients.get(client);
    const isAvoided = call.reset || (remembered && call.avoid?.has(remembered.endpoint));
    if (remembered && !isAvoided && isFresh(entry, remembered, now)) {
      remembered.usedAt = now;
      entry.clients.set(client, remembered);
      return remembered.endpoint;
    }
    const endpoint = this.#choose(entry, call);
    entry.clients.set(client, { endpoint, usedAt: now });
    return endpoint;
  }

  distribution(key: string): Distribution {
    const { list = [], affinitySeconds = 0, choice = 'round-robin' } = this.#entries.get(key) ?? {};
    return { endpoints: list, affinitySeconds, choice };
  }

  /** Returns the endpoints in turn order and the one that a client is bound to. Changes nothing. */
  preview(key: string, client: string): { turns: readonly string[]; bound: string | undefined } {
    const entry = this.#entries.get(key);
    if (!entry) return { turns: [], bound: undefined };
    const { list, index, clients, choice } = entry;
    const remembered = clients.get(choice === 'random' ? '' : client);
    const isBound = remembered && isFresh(entry, remembered, this.#options.clock.monotonic());
    return {
      turns: [...list.slice(index), ...list.slice(0, index)],
      bound: isBound ? remembered.endpoint : undefined,
    };
  }

  /** Forgets clients whose affinity has expired. */
  prune(): void {
    const now = this.#options.clock.monotonic();
    for (const entry of this.#entries.values()) {
      for (const [client, remembered] of entry.clients) {
        if (!isFresh(entry, remembered, now)) entry.clients.delete(client);
      }
    }
  }

  /** Clients that are remembered, over all services. */
  get rememberedClients(): number {
    let count = 0;
    for (const { clients } of this.#entries.values()) count += clients.size;
    return count;
  }

  #entry(key: string): Entry {
    const known = this.#entries.get(key);
    if (known) return known;
    const entry: Entry = {
      hasService: false,
      list: [],
      index: 0,
      choice: 'round-robin',
      affinitySeconds: 0,
      clients: new RecentMap(maxRememberedClients),
    };
    this.#entries.set(key, entry);
    return entry;
  }

  #choose(entry: Entry, call: Call): string {
    const { list, choice } = entry;
    const start = choice === 'random' ? Math.floor(this.#options.random() * list.length) : entry.index;
    const at = choice === 'least-connections' ? leastLoaded(list, start, call) : firstOf(list, start, call);
    entry.index = (at + 1) % list.length;
    return list[at] ?? '';
  }

  #shuffled(endpoints: readonly string[]): string[] {
    const list = [...endpoints];
    for (let last = list.length - 1; last > 0; last--) {
      const other = Math.floor(this.#options.random() * (last + 1));
      const [a = '', b = ''] = [list[last], list[other]];
      list[last] = b;
      list[other] = a;
    }
    return list;
  }
}

/** Counts whole seconds, as upstream does; with `random` (loopback) the last moment still counts. */
function isFresh({ choice, affinitySeconds }: Entry, { usedAt }: Remembered, now: number): boolean {
  if (choice === 'random') return now - usedAt <= affinitySeconds * 1000;
  return Math.floor((now - usedAt) / 1000) < affinitySeconds;
}

/** Returns the first index from `start` on that is not to be avoided; `start` if all are. */
function firstOf(list: readonly string[], start: number, { avoid }: Call): number {
  if (!avoid) return start;
  for (let step = 0; step < list.length; step++) {
    const at = (start + step) % list.length;
    if (!avoid.has(list[at] ?? '')) return at;
  }
  return start;
}

function leastLoaded(list: readonly string[], start: number, { load, avoid }: Call): number {
  let best = start;
  let least = Number.POSITIVE_INFINITY;
  for (let step = 0; step < list.length && least > 0; step++) {
    const at = (start + step) % list.length;
    const endpoint = list[at] ?? '';
    if (avoid?.has(endpoint)) continue;
    const current = load(endpoint);
    if (current < least) [best, least] = [at, current];
  }
  return best;
}

function isSameMultiset(a: readonly string[], b: readonly string[]): boolean {
  if (a.length !== b.length) return false;
  const sortedB = b.toSorted();
  return a.toSorted().every((text, i) => text === sortedB[i]);
}
