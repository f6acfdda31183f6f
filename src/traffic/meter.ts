import type { MeteredKind, MeteredPort, TrafficMeter } from '../inspect/traffic.ts';
import type { TrafficFigures } from '../inspect/traffic-api.ts';
import type { Counted } from '../kernel/nft/objects.ts';
import type { Clock } from '../lib/clock.ts';
import { TimeSlice } from '../lib/time-slice.ts';
import type { Family } from '../model/ip.ts';
import { type CountedDestination, type CountingClient, CountingTable, kinds } from './counting-table.ts';
import { destinationKey, type PlaceKey, protocolRank } from './destination.ts';
import { type FlowTable, OpenFlows } from './open-flows.ts';
import type { PlanFeed } from './plan-feed.ts';
import type { RefusalKernel } from './refusal-log.ts';
import { RefusalWatch } from './refusal-watch.ts';
import type { Decider } from './refusals.ts';
import type { ObservedService, ServiceIndex } from './service-index.ts';
import { ServiceIndexes } from './service-indexes.ts';

/** The kernel, as far as a meter needs it. */
export interface MeterKernel {
  readonly nft: CountingClient;
  readonly flows: FlowTable;
  ownAddresses(): Promise<readonly string[]>;
  interfaces(): Promise<ReadonlyMap<number, string>>;
  openRefusals(): Promise<RefusalKernel>;
  close(): void;
}

export interface MeterOptions {
  readonly feeds: readonly PlanFeed[];
  readonly kinds: ReadonlySet<MeteredKind>;
  readonly kernel: MeterKernel;
  readonly decider: (family: Family) => Decider;
  readonly clock: Clock;
}

const nothing: Counted = { packets: 0, bytes: 0 };

/** Totals of one service port. They only grow. */
class Totals {
  opened = 0;
  packetsOut = 0;
  bytesOut = 0;
  packetsBack = 0;
  bytesBack = 0;
  readonly failed = { rejected: 0, dropped: 0, filtered: 0, reset: 0, unanswered: 0 };

  /** Adds what was counted since the last reading. */
  add(kind: CountedDestination['kind'], packets: number, bytes: number): void {
    if (kind === 'first') this.opened += packets;
    if (kind === 'reset') this.failed.reset += packets;
    if (kind === 'first' || kind === 'out') {
      this.packetsOut += packets;
      this.bytesOut += bytes;
    } else {
      this.packetsBack += packets;
      this.bytesBack += bytes;
    }
  }

  figures(open: number): TrafficFigures {
    return {
      opened: this.opened,
      ended: Math.max(0, this.opened - open),
      open,
      packetsToEndpoint: this.packetsOut,
      packetsToClient: this.packetsBack,
      bytesToEndpoint: this.bytesOut,
      bytesToClient: this.bytesBack,
      failed: { ...this.failed },
    };
  }
}

/**
 * Counts the traffic of service ports with rules of the kernel, which are read when somebody asks. It costs each packet a
 * lookup, and this process nothing. It knows neither endpoints nor clients.
 */
export class RuleMeter implements TrafficMeter {
  readonly #options: MeterOptions;
  readonly #services: ServiceIndexes;
  readonly #open: OpenFlows;
  readonly #refusals: RefusalWatch;
  readonly #tables: ReadonlyMap<Family, CountingTable>;
  /** What the elements had at the last reading. */
  readonly #before = new Map<PlaceKey, Counted>();
  readonly #totals = new Map<ObservedService, Totals>();
  #last: Promise<unknown> = Promise.resolve();
  #failure: Error | undefined;

  constructor(options: MeterOptions) {
    const { feeds, kinds, kernel, clock } = options;
    this.#options = options;
    this.#services = new ServiceIndexes(feeds, clock);
    this.#open = new OpenFlows(kernel.flows, this.#services, clock);
    const counted = kinds.has('connections') || kinds.has('bytes') ? feeds : [];
    this.#tables = new Map(
      counted.map(({ family }) => [family, new CountingTable(kernel.nft, family, kinds.has('bytes'))]),
    );
    this.#refusals = new RefusalWatch({
      ...options,
      indexes: this.#services.byFamily,
      onRefused: ({ service, how }) => {
        this.#totalsOf(service).failed[how]++;
      },
    });
  }

  /** Begins to count. Rejects when the kernel does not let us; the caller closes it then, too. */
  async start(): Promise<void> {
    const timeSlice = new TimeSlice(this.#options.clock);
    for (const table of this.#tables.values()) await table.create();
    await this.#services.start(timeSlice, (error) => {
      this.#failure ??= error;
    });
    if (this.#options.kinds.has('refusals')) await this.#refusals.start(timeSlice);
  }

  /** Readers that come at the same time are served one after the other. Rejects when plans could not be followed. */
  read(): Promise<readonly MeteredPort[]> {
    const reading = this.#last.then(() => this.#read());
    this.#last = reading.catch(() => undefined);
    return reading;
  }

  close(): void {
    this.#services.close();
    this.#refusals.close();
    this.#options.kernel.close();
  }

  async #read(): Promise<readonly MeteredPort[]> {
    if (this.#failure) throw this.#failure;
    this.#services.refresh(await this.#options.kernel.ownAddresses());
    for (const [family, table] of this.#tables) {
      const index = this.#services.byFamily.get(family);
      await table.read((counted) => this.#take(index, counted));
    }
    if (this.#options.kinds.has('connections')) await this.#look();
    return [...this.#totals].flatMap(([service, totals]): MeteredPort[] => {
      const { plan } = service;
      const isGone = this.#services.byFamily.get(plan.port.family)?.get(service.key) !== service;
      if (isGone) this.#totals.delete(service);
      return isGone ? [] : [{ port: plan.port, figures: totals.figures(this.#open.of(service)) }];
    });
  }

  async #look(): Promise<void> {
    await this.#open.refresh((service) => {
      this.#totalsOf(service).failed.unanswered++;
    });
    for (const service of this.#open.services()) this.#totalsOf(service);
  }

  /** Counts for the service port that has the destination now. Returns false when none has it. */
  #take(index: ServiceIndex | undefined, counted: CountedDestination): boolean {
    const { address, port, protocol, kind, packets, bytes } = counted;
    const service = index?.at(address, port, protocol);
    if (!service) return false;
    const key = elementKey(destinationKey(address, port, protocolRank(protocol)), kinds.indexOf(kind));
    const known = this.#before.get(key);
    // An element that was removed meanwhile counts from 0 again.
    const before = known && known.packets <= packets ? known : nothing;
    this.#totalsOf(service).add(kind, packets - before.packets, bytes - before.bytes);
    this.#before.set(key, { packets, bytes });
    return true;
  }

  #totalsOf(service: ObservedService): Totals {
    const known = this.#totals.get(service) ?? new Totals();
    this.#totals.set(service, known);
    return known;
  }
}

function elementKey(destination: PlaceKey, kind: number): PlaceKey {
  return typeof destination === 'number' ? destination * kinds.length + kind : `${destination}${kind}`;
}
