import type { TrackedFlow } from '../kernel/ct/tracked-flow.ts';
import { protocolNumbers } from '../kernel/numbers.ts';
import type { TimeSlice } from '../lib/time-slice.ts';
import { type AddressKey, addressKeyFrom } from '../model/address-key.ts';
import type { Family } from '../model/ip.ts';
import { distinctFrontends } from '../plan/frontend.ts';
import type { PlannedPort } from '../plan/plan.ts';
import {
  destinationKey,
  endpointKey,
  isLoopbackKey,
  nodePortKey,
  type PlaceKey,
  protocolRank,
} from './destination.ts';
import type { Figures } from './figures.ts';
import type { PlanFeed } from './plan-feed.ts';
import { SeenPlacements } from './seen-placements.ts';

/** Ends of flows come up to three minutes after the last packet. */
const keepGoneMs = 300_000;
const keptEndpoints = 200;

export interface ServiceTraffic {
  readonly total: Figures;
  readonly endpoints: Map<PlaceKey, Figures>;
  readonly clients: Map<AddressKey, Figures>;
  /** Connections that got no endpoint. */
  refused?: Figures;
}

/** A service port, and the figures of its traffic. */
export class ObservedService {
  /** The last one, when the service port is gone. */
  plan: PlannedPort;
  /** Made with the first traffic: most of many service ports have none. */
  traffic: ServiceTraffic | undefined;
  destinations: readonly PlaceKey[] = [];
  /** Milliseconds by the monotonic clock; undefined while the service port exists. */
  goneAt: number | undefined;

  readonly #read: PlanFeed['placements'];
  #placements: SeenPlacements | undefined;

  constructor(plan: PlannedPort, placements: PlanFeed['placements']) {
    this.plan = plan;
    this.#read = placements;
  }

  /** Made with the first question. */
  get placements(): SeenPlacements {
    this.#placements ??= new SeenPlacements((known) => this.#read(this.plan.port, known));
    return this.#placements;
  }

  get key(): string {
    return this.plan.port.key;
  }
}

/**
 * Finds the service port of a destination, in one family. It follows the plans. Destinations of service ports that are
 * gone are kept for some minutes, so that the ends of their flows are counted.
 */
export class ServiceIndex {
  readonly family: Family;
  readonly #plans: ReadonlyMap<string, PlannedPort>;
  readonly #placements: PlanFeed['placements'];
  readonly #services = new Map<string, ObservedService>();
  readonly #byDestination = new Map<PlaceKey, ObservedService>();
  /** Destinations that their service port has no more, the oldest first. */
  #retired: { readonly key: PlaceKey; readonly service: ObservedService; readonly at: number }[] = [];
  #ownAddresses: ReadonlySet<AddressKey> = new Set();

  constructor(feed: Pick<PlanFeed, 'family' | 'plans' | 'placements'>) {
    this.family = feed.family;
    this.#plans = feed.plans;
    this.#placements = (port, known) => feed.placements(port, known);
  }

  /** Reads every plan, in slices of time. */
  async build(timeSlice: TimeSlice): Promise<void> {
    for (const key of this.#plans.keys()) {
      this.update(key, 0);
      if (timeSlice.isSpent) await timeSlice.yield();
    }
  }

  /** Takes over the plan of a service port that was added, changed or removed. `now` is by the monotonic clock. */
  update(key: string, now: number): void {
    const plan = this.#plans.get(key);
    const known = this.#services.get(key);
    const service = known ?? (plan && new ObservedService(plan, this.#placements));
    if (!service) return;
    if (!known) this.#services.set(key, service);
    const before = service.destinations;
    service.destinations = plan ? destinationsOf(plan) : [];
    if (plan) service.plan = plan;
    service.goneAt = plan ? undefined : now;
    for (const destination of service.destinations) this.#byDestination.set(destination, service);
    for (const destination of before) {
      if (!service.destinations.includes(destination))
        this.#retired.push({ key: destination, service, at: now });
    }
  }

  /** Addresses at which node ports are served. */
  setOwnAddresses(addresses: Iterable<string>): void {
    this.#ownAddresses = new Set([...addresses].flatMap((address) => addressKeyFrom(address) ?? []));
  }

  /** The service port that a flow goes through; undefined when there is none, or the flow was not rewritten. */
  find(flow: TrackedFlow): ObservedService | undefined {
    if (flow.answerer === flow.destination && flow.answererPort === flow.destinationPort) return undefined;
    return this.at(flow.destination, flow.destinationPort, flow.protocol);
  }

  /** The service port at a destination; `protocol` is its IP number. */
  at(address: AddressKey, port: number, protocol: number): ObservedService | undefined {
    const rank = protocolRank(protocol);
    if (rank === 0) return undefined;
    const found = this.#byDestination.get(destinationKey(address, port, rank));
    if (found || !(this.#ownAddresses.has(address) || isLoopbackKey(address))) return found;
    return this.#byDestination.get(nodePortKey(this.family, port, rank));
  }

  services(): IterableIterator<ObservedService> {
    return this.#services.values();
  }

  get(key: string): ObservedService | undefined {
    return this.#services.get(key);
  }

  /** Forgets destinations and service ports that have been gone for long enough. */
  prune(now: number): void {
    const isDue = ({ at }: { readonly at: number }) => now - at >= keepGoneMs;
    for (const { key, service } of this.#retired.filter(isDue)) {
      const isCurrent = service.destinations.includes(key);
      if (!isCurrent && this.#byDestination.get(key) === service) this.#byDestination.delete(key);
      if (service.goneAt !== undefined && now - service.goneAt >= keepGoneMs)
        this.#services.delete(service.key);
    }
    this.#retired = this.#retired.filter((retired) => !isDue(retired));
    for (const service of this.#services.values())
      if (service.traffic) forgetEndpoints(service, service.traffic);
  }
}

/** Figures of endpoints that are gone are kept, as long as they are not many more than those that are there. */
function forgetEndpoints({ plan }: ObservedService, { endpoints }: ServiceTraffic): void {
  if (endpoints.size <= 2 * plan.endpoints.length + keptEndpoints) return;
  const known = new Set(
    plan.endpoints.flatMap(({ ip, port }) => {
      const address = addressKeyFrom(ip);
      return address === undefined ? [] : [endpointKey(address, port)];
    }),
  );
  for (const key of endpoints.keys()) if (!known.has(key)) endpoints.delete(key);
}

function destinationsOf(plan: PlannedPort): PlaceKey[] {
  const { family } = plan.port;
  return distinctFrontends(plan).flatMap(({ kind, address, port, protocol }): PlaceKey[] => {
    const rank = protocolRank(protocolNumbers[protocol]);
    if (kind === 'node port') return [nodePortKey(family, port, rank)];
    const key = addressKeyFrom(address);
    return key === undefined ? [] : [destinationKey(key, port, rank)];
  });
}
