import type { Clock } from '../lib/clock.ts';
import type { Balance } from '../model/service-port.ts';
import type { BindingPage, Outlook } from './forwarder.ts';
import { RecentMap } from './recent-map.ts';
import type { SocketAddress } from './socket-address.ts';
import { StableChoice } from './stable-choice.ts';

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
  /** By a hash of the client's address and port, or of its address alone: the same endpoint on every node. */
  | 'hash'
  | 'hash-client'
  /** With affinity, all clients share one remembered choice: on loopback they all have the same address. */
  | 'random';

export function isHash(choice: Choice): choice is 'hash' | 'hash-client' {
  return choice === 'hash' || choice === 'hash-client';
}

/** How connections of a service get their endpoint: by the hash that it asks for, or as usual. */
export function choiceFor(balance: Balance, usual: Choice): Choice {
  return balance === 'default' ? usual : balance;
}

/** How connections of a service are spread. */
export interface Distribution {
  readonly endpoints: readonly string[];
  /** 0 = none. */
  readonly affinitySeconds: number;
  readonly choice: Choice;
}

/** A request for an endpoint. */
export interface Call {
  /** Returns the client's address; called only for services with affinity or a hash. */
  readonly client: () => SocketAddress;
  /** The last endpoint did not answer: forget the client's remembered endpoint. */
  readonly reset: boolean;
  /** Returns the number of open connections of an endpoint. */
  readonly load: (endpoint: string) => number;
  /** Endpoints to skip while there are others, even if the client is bound to one of them. */
  readonly avoid?: ReadonlySet<string>;
}

/**
 * Clients remembered per service, about ten megabytes. The limit matters because one host can call from any number of
 * IPv6 addresses, each remembered for hours.
 */
export const maxRememberedClients = 1 << 16;

/** Bindings per page: few enough that the traffic of the thread does not wait for them noticeably. */
const pageSize = 2048;

interface Remembered {
  readonly endpoint: string;
  usedAt: number;
}

/**
 * Chooses an endpoint (`ip:port`) for each new connection of one service. When an endpoint is removed, clients bound to
 * it are forgotten.
 */
export class Balancer {
  readonly #options: BalancerOptions;
  readonly #clients = new RecentMap<string, Remembered>(maxRememberedClients);
  #endpoints: readonly string[] = [];
  /** Index of the next endpoint in turn. */
  #index = 0;
  #affinitySeconds = 0;
  #choice: Choice = 'round-robin';
  /** Made when a hash first chooses among these endpoints. */
  #stable: StableChoice | undefined;

  constructor(options: BalancerOptions) {
    this.#options = options;
  }

  /** Sets client affinity (0 seconds = none) and choice. */
  configure(affinitySeconds: number, choice: Choice): void {
    const isShared = choice === 'random';
    const wasShared = this.#choice === 'random';
    const isOtherMemory = isShared !== wasShared || (isShared && affinitySeconds !== this.#affinitySeconds);
    if (affinitySeconds === 0 || isOtherMemory) this.#clients.clear();
    this.#affinitySeconds = affinitySeconds;
    this.#choice = choice;
  }

  /** Replaces the endpoints. The same endpoints in another order change nothing. */
  setEndpoints(endpoints: readonly string[]): void {
    if (isSameMultiset(this.#endpoints, endpoints)) return;
    const present = new Set(endpoints);
    for (const [client, { endpoint }] of this.#clients) {
      if (!present.has(endpoint)) this.#clients.delete(client);
    }
    this.#endpoints = this.#shuffled(endpoints);
    this.#stable = undefined;
    this.#index = 0;
  }

  /** Chooses the endpoint for a new connection; undefined without endpoints. */
  next(call: Call): string | undefined {
    if (this.#endpoints.length === 0) return undefined;
    if (this.#affinitySeconds === 0) return this.#choose(call);
    const client = this.#choice === 'random' ? '' : call.client().ip;
    const now = this.#options.clock.monotonic();
    const remembered = this.#clients.get(client);
    const isAvoided = call.reset || (remembered && call.avoid?.has(remembered.endpoint));
    if (remembered && !isAvoided && this.#isFresh(remembered, now)) {
      remembered.usedAt = now;
      this.#clients.set(client, remembered);
      return remembered.endpoint;
    }
    const endpoint = this.#choose(call);
    this.#clients.set(client, { endpoint, usedAt: now });
    return endpoint;
  }

  settings(): Distribution {
    return { endpoints: this.#endpoints, affinitySeconds: this.#affinitySeconds, choice: this.#choice };
  }

  /** Returns the endpoints in turn order and the one that a client is bound to, and for how long. Changes nothing. */
  preview(client: string): Pick<Outlook, 'bound'> & { readonly turns: readonly string[] } {
    const remembered = this.#clients.get(this.#choice === 'random' ? '' : client);
    const now = this.#options.clock.monotonic();
    const isBound = remembered && this.#isFresh(remembered, now);
    return {
      turns: [...this.#endpoints.slice(this.#index), ...this.#endpoints.slice(0, this.#index)],
      bound: isBound
        ? { endpoint: remembered.endpoint, secondsLeft: this.#secondsLeft(remembered, now) }
        : undefined,
    };
  }

  /**
   * A page of the clients that are bound now, those that called last first: from the one that called at `start` on.
   * Clients that called at the same moment are on one page. Changes nothing.
   */
  bindings(start = Number.POSITIVE_INFINITY): BindingPage {
    const bindings: BindingPage['bindings'][number][] = [];
    const now = this.#options.clock.monotonic();
    let last = start;
    for (const [client, remembered] of this.#clients.newestFirst()) {
      const { endpoint, usedAt } = remembered;
      if (usedAt > start) continue;
      if (!this.#isFresh(remembered, now)) break;
      if (bindings.length >= pageSize && usedAt < last) return { bindings, next: usedAt };
      last = usedAt;
      // With `random`, all clients share one choice.
      if (client !== '') bindings.push({ client, endpoint, secondsLeft: this.#secondsLeft(remembered, now) });
    }
    return { bindings, next: undefined };
  }

  /** Forgets clients whose affinity has expired. */
  prune(): void {
    const now = this.#options.clock.monotonic();
    for (const [client, remembered] of this.#clients) {
      if (!this.#isFresh(remembered, now)) this.#clients.delete(client);
    }
  }

  get rememberedClients(): number {
    return this.#clients.size;
  }

  #choose(call: Call): string {
    const list = this.#endpoints;
    if (isHash(this.#choice)) {
      this.#stable ??= new StableChoice(list);
      return this.#stable.of(call.client(), this.#choice, call.avoid);
    }
    const isRandom = this.#choice === 'random';
    const start = isRandom ? Math.floor(this.#options.random() * list.length) : this.#index;
    const find = this.#choice === 'least-connections' ? leastLoaded : firstOf;
    const at = find(list, start, call);
    this.#index = (at + 1) % list.length;
    return list[at] ?? '';
  }

  /** Counts whole seconds, as upstream does; with `random` (loopback) the last moment still counts. */
  #isFresh({ usedAt }: Remembered, now: number): boolean {
    if (this.#choice === 'random') return now - usedAt <= this.#affinitySeconds * 1000;
    return Math.floor((now - usedAt) / 1000) < this.#affinitySeconds;
  }

  #secondsLeft({ usedAt }: Remembered, now: number): number {
    return this.#affinitySeconds - (now - usedAt) / 1000;
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
