import type { FlowItem } from '../inspect/traffic-api.ts';
import type { ConntrackClient } from '../kernel/ct/client.ts';
import type { FlowListener, FlowSubscription } from '../kernel/ct/events.ts';
import type { TrackedFlow } from '../kernel/ct/tracked-flow.ts';
import type { Clock } from '../lib/clock.ts';
import { sleep } from '../lib/sleep.ts';
import { reportSliceMs, TimeSlice } from '../lib/time-slice.ts';
import type { AddressKey } from '../model/address-key.ts';
import type { Family } from '../model/ip.ts';
import type { Accounting } from './accounting.ts';
import { ClosedConnections } from './closed-connections.ts';
import { endpointKey, type PlaceKey } from './destination.ts';
import { Figures, FlowSums } from './figures.ts';
import type { PlanFeed } from './plan-feed.ts';
import type { RefusalKernel } from './refusal-log.ts';
import { RefusalWatch } from './refusal-watch.ts';
import type { Decider, RefusedConnection } from './refusals.ts';
import { SeenIds } from './seen-ids.ts';
import type { ObservedService, ServiceTraffic } from './service-index.ts';
import { ServiceIndexes } from './service-indexes.ts';

/** The kernel, as far as an observation needs it. */
export interface ObservedKernel {
  readonly flows: Pick<ConntrackClient, 'forEachTrackedFlow' | 'readAgain'>;
  follow(listener: FlowListener): FlowSubscription;
  switchOnAccounting(): Promise<Accounting>;
  ownAddresses(): Promise<readonly string[]>;
  interfaces(): Promise<ReadonlyMap<number, string>>;
  /** For connections that are refused. Rejects when the kernel does not let us. */
  openRefusals(): Promise<RefusalKernel>;
  close(): void;
}

/** Is told what happens to flows of service ports, as it happens. The record is filled again for the next event. */
export interface FlowWatcher {
  opened(flow: TrackedFlow, service: ObservedService): void;
  /** A TCP connection is closed, or the kernel forgot a flow. Called once for each. */
  ended(flow: TrackedFlow, service: ObservedService): void;
  refused(event: RefusalEvent, flow: FlowItem, service: ObservedService, reason: string): void;
  lost(count: number): void;
  /** The observation ended. */
  closed(): void;
}

export type RefusalEvent = 'Rejected' | 'Dropped' | 'Filtered';

export interface ObservationOptions {
  readonly feeds: readonly PlanFeed[];
  readonly kernel: ObservedKernel;
  readonly decider: (family: Family) => Decider;
  readonly clock: Clock;
  /** The events ended: the observation cannot go on. */
  readonly onFailure: (error: Error) => void;
}

/** An event that came while the table was read. */
interface HeldEvent {
  readonly id: number;
  readonly at: Places;
  /** Undefined for an opening. */
  readonly end: FlowSums | undefined;
}

/** What a flow counts for. */
interface Places {
  readonly service: ObservedService;
  readonly endpoint: PlaceKey;
  readonly client: AddressKey;
}

const lookEveryMs = 1_000;
/** Looking at the table takes at most a fifth of the time. */
const restPerLook = 4;
const drainMs = 1_000;
const lookAttempts = 3;
/** Clients of all service ports together. */
export const maxClients = 10_000;

/**
 * Counts the traffic of service ports from the events of the connection table and from looks at it. A look is needed
 * for what is open: packets and bytes of a flow are reported with its end only.
 */
export class Observation {
  readonly services: ServiceIndexes;
  readonly #options: ObservationOptions;
  #accounting: Accounting | undefined;
  readonly #refusals: RefusalWatch;
  readonly #watchers = new Set<FlowWatcher>();
  #events: FlowSubscription | undefined;
  /** While somebody watches. */
  #closes: ClosedConnections | undefined;
  /** Events since a look began; undefined while none is under way. */
  #held: HeldEvent[] | undefined;
  #look = 0;
  #lookedAt = Number.NEGATIVE_INFINITY;
  #lookMs = 0;
  #since = 0;
  #lost = 0;
  #clients = 0;
  #forgottenClients = 0;

  constructor(options: ObservationOptions) {
    this.#options = options;
    const { feeds, kernel, decider, clock } = options;
    this.services = new ServiceIndexes(feeds, clock);
    this.#refusals = new RefusalWatch({
      feeds,
      indexes: this.services.byFamily,
      kernel,
      decider,
      onRefused: (refused) => this.#refused(refused),
      clock,
    });
  }

  /** Begins to count. Rejects when the kernel does not let us; the caller closes it then, too. */
  async start(): Promise<void> {
    const { kernel, clock, onFailure } = this.#options;
    const timeSlice = new TimeSlice(clock, reportSliceMs);
    this.#accounting = await kernel.switchOnAccounting();
    await this.services.start(timeSlice, onFailure);
    this.#events = kernel.follow({
      opened: (flow) => this.#opened(flow),
      closed: (flow) => this.#closes?.closed(flow),
      ended: (flow) => this.#ended(flow),
      lost: (count) => {
        this.#lost += count;
        for (const watcher of this.#watchers) watcher.lost(count);
      },
      failed: onFailure,
    });
    await this.#refusals.start(timeSlice);
    await this.#takeLook(true);
    this.#since = clock.now();
  }

  /** Tells a watcher what happens from now on. */
  watch(watcher: FlowWatcher): void {
    this.#watchers.add(watcher);
    if (this.#closes || !this.#events) return;
    this.#closes = new ClosedConnections({
      families: this.services.byFamily.keys(),
      table: this.#options.kernel.flows,
      events: this.#events,
      find: (flow) => this.services.find(flow),
      onClosed: (flow, service) => this.#tellEnd(flow, service),
      clock: this.#options.clock,
    });
    void this.#closes.start();
  }

  /** Returns whether it was a watcher. */
  unwatch(watcher: FlowWatcher): boolean {
    const isKnown = this.#watchers.delete(watcher);
    if (this.#watchers.size === 0) {
      this.#closes?.stop();
      this.#closes = undefined;
    }
    return isKnown;
  }

  /** Milliseconds since the Unix epoch. */
  get since(): number {
    return this.#since;
  }

  /** The number of the last look, which figures are read at. */
  get look(): number {
    return this.#look;
  }

  get lostEvents(): number {
    return this.#lost;
  }

  /** What cannot be counted, and why; null when everything is. */
  get warning(): string | null {
    const reasons = [
      ...(this.#accounting?.hasEvents ? [] : ['new connections are not reported: nf_conntrack_events is 0']),
      ...(this.isCounted ? [] : ['packets and bytes are not counted: nf_conntrack_acct cannot be set']),
      ...(this.#refusals.failure === undefined
        ? []
        : [`refused connections are not counted: ${this.#refusals.failure}`]),
    ];
    return reasons.length > 0 ? reasons.join('; ') : null;
  }

  get isCounted(): boolean {
    return this.#accounting?.isOn ?? false;
  }

  /** Clients whose figures were given up, because there were too many. */
  get forgottenClients(): number {
    return this.#forgottenClients;
  }

  /** Looks at the table, unless the last look is recent. The caller sees to it that only one is under way. */
  async refresh(maxAgeMs = lookEveryMs): Promise<void> {
    const rest = Math.max(maxAgeMs, restPerLook * this.#lookMs);
    if (this.#options.clock.monotonic() - this.#lookedAt >= rest) await this.#takeLook(false);
  }

  /** Visits the flows of service ports that there are now. */
  async forEachFlow(visitor: {
    flow(flow: TrackedFlow, service: ObservedService): void;
    pause(): Promise<void> | undefined;
  }): Promise<void> {
    for (const family of this.services.byFamily.keys()) {
      await this.#options.kernel.flows.forEachTrackedFlow(family, {
        flow: (flow) => {
          const service = this.services.find(flow);
          if (service) visitor.flow(flow, service);
        },
        // What was passed on cannot be taken back.
        restart: () => {
          throw new Error('the table of connections changed while it was read');
        },
        pause: () => visitor.pause(),
      });
    }
  }

  #refused({ packet, service, how, event, flow, reason }: RefusedConnection): void {
    for (const watcher of this.#watchers) watcher.refused(event, flow, service, reason);
    const traffic = trafficOf(service);
    traffic.refused ??= new Figures();
    traffic.total.refused(how, this.#look);
    traffic.refused.refused(how, this.#look);
    this.#clientOf(traffic, packet.source).refused(how, this.#look);
  }

  close(): void {
    for (const watcher of this.#watchers) watcher.closed();
    this.#closes?.stop();
    this.#closes = undefined;
    this.#events?.close();
    this.#refusals.close();
    this.services.close();
    const { kernel } = this.#options;
    const closeKernel = () => kernel.close();
    void (this.#accounting?.restore() ?? Promise.resolve()).then(closeKernel, closeKernel);
  }

  #opened(flow: TrackedFlow): void {
    const service = this.services.find(flow);
    if (!service) return;
    for (const watcher of this.#watchers) watcher.opened(flow, service);
    const at = placesOf(flow, service);
    if (this.#held) this.#held.push({ id: flow.id, at, end: undefined });
    else this.#count(at, undefined);
  }

  #ended(flow: TrackedFlow): void {
    const service = this.services.find(flow);
    if (!service) return;
    if (!this.#closes?.forget(flow.id)) this.#tellEnd(flow, service);
    const at = placesOf(flow, service);
    const end = FlowSums.of(flow);
    if (this.#held) this.#held.push({ id: flow.id, at, end });
    else this.#count(at, end);
  }

  #tellEnd(flow: TrackedFlow, service: ObservedService): void {
    for (const watcher of this.#watchers) watcher.ended(flow, service);
  }

  #count(at: Places, end: FlowSums | undefined): void {
    for (const figures of this.#figuresAt(at)) {
      if (end) figures.ended(end, this.#look);
      else figures.opened(this.#look);
    }
  }

  async #takeLook(isFirst: boolean): Promise<void> {
    const { clock, kernel } = this.#options;
    const started = clock.monotonic();
    this.services.refresh(await kernel.ownAddresses());
    this.#held = [];
    let seen = new SeenIds();
    let number = this.#look;
    try {
      for (let attempt = 1; ; attempt++) {
        seen = new SeenIds();
        number++;
        if (await this.#readTable(number, seen, isFirst && attempt === 1)) break;
        if (attempt === lookAttempts) throw new Error('the table of connections changed while it was read');
      }
      // What left the table before it was read has its event queued by now.
      await Promise.race([this.#events?.drained(), sleep(clock, drainMs)]);
    } finally {
      await this.#settle(number, seen, isFirst);
    }
    this.#lookedAt = clock.monotonic();
    this.#lookMs = this.#lookedAt - started;
  }

  /** Counts every flow in the table. Returns false when the reading was disturbed, and has to be repeated. */
  async #readTable(number: number, seen: SeenIds, isFirst: boolean): Promise<boolean> {
    let isIntact = true;
    for (const family of this.services.byFamily.keys()) {
      await this.#options.kernel.flows.forEachTrackedFlow(family, {
        flow: (flow) => {
          const service = this.services.find(flow);
          if (!service) return;
          seen.add(flow.id);
          const sums = FlowSums.of(flow);
          for (const figures of this.#figuresAt(placesOf(flow, service))) {
            if (isFirst) figures.wasThere(sums);
            figures.found(sums, number);
          }
        },
        restart: () => {
          isIntact = false;
        },
      });
    }
    return isIntact;
  }

  /**
   * Counts the events that came while the table was read: as before the look or as after it, so that no flow counts
   * twice or not at all. The first look counts nothing from before.
   */
  async #settle(number: number, seen: SeenIds, isFirst: boolean): Promise<void> {
    const held = this.#held ?? [];
    // What comes meanwhile is counted last: it happened after the look.
    const later: HeldEvent[] = [];
    this.#held = later;
    const endedIds = new Set(held.flatMap(({ id, end }) => (end ? [id] : [])));
    const isBefore = ({ id, end }: HeldEvent) => (end ? !seen.has(id) : seen.has(id) || endedIds.has(id));
    const { before = [], after = [] } = Object.groupBy(held, (event) =>
      isBefore(event) ? 'before' : 'after',
    );
    if (!isFirst) await this.#countAll(before);
    this.#look = number;
    await this.#countAll(after);
    this.#held = undefined;
    for (const { at, end } of later) this.#count(at, end);
  }

  async #countAll(events: readonly HeldEvent[]): Promise<void> {
    const timeSlice = new TimeSlice(this.#options.clock, reportSliceMs);
    for (const { at, end } of events) {
      this.#count(at, end);
      if (timeSlice.isSpent) await timeSlice.yield();
    }
  }

  #figuresAt({ service, endpoint, client }: Places): readonly Figures[] {
    const traffic = trafficOf(service);
    let ofEndpoint = traffic.endpoints.get(endpoint);
    if (!ofEndpoint) {
      ofEndpoint = new Figures();
      traffic.endpoints.set(endpoint, ofEndpoint);
    }
    return [traffic.total, ofEndpoint, this.#clientOf(traffic, client)];
  }

  #clientOf(traffic: ServiceTraffic, client: AddressKey): Figures {
    const known = traffic.clients.get(client);
    if (known) return known;
    if (this.#clients >= maxClients) this.#forgetClients();
    const figures = new Figures();
    traffic.clients.set(client, figures);
    this.#clients++;
    return figures;
  }

  /** Gives up the tenth of the clients with the fewest connections. */
  #forgetClients(): void {
    const all = [...this.services.byFamily.values()]
      .flatMap((index) => [...index.services()])
      .flatMap(({ traffic }) =>
        [...(traffic?.clients ?? [])].map(([client, figures]) => ({ traffic, client, figures })),
      )
      .sort((a, b) => a.figures.weight - b.figures.weight);
    for (const { traffic, client } of all.slice(0, Math.max(1, maxClients / 10))) {
      traffic?.clients.delete(client);
      this.#forgottenClients++;
    }
    this.#clients = all.length - Math.max(1, maxClients / 10);
  }
}

function placesOf(flow: TrackedFlow, service: ObservedService): Places {
  return { service, endpoint: endpointKey(flow.answerer, flow.answererPort), client: flow.source };
}

function trafficOf(service: ObservedService): ServiceTraffic {
  service.traffic ??= { total: new Figures(), endpoints: new Map(), clients: new Map() };
  return service.traffic;
}
