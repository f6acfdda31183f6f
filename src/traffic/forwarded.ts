import type { ForwardedConnections, ForwardedPort, ForwardedVolume } from '../backends/mode.ts';
import type {
  FlowFilter,
  MeteredKind,
  MeteredPort,
  TrafficAnswer,
  TrafficMeter,
  TrafficSource,
  TrafficWish,
} from '../inspect/traffic.ts';
import type { FailedConnections, FlowItem, TrafficFigures, TrafficItem } from '../inspect/traffic-api.ts';
import type { Clock } from '../lib/clock.ts';
import { messageOf } from '../lib/thrown.ts';
import { reportSliceMs, TimeSlice } from '../lib/time-slice.ts';
import type { ServicePort } from '../model/service-port.ts';
import type { PlannedPort } from '../plan/plan.ts';
import { ForwardedEndpoints } from './forwarded-endpoints.ts';
import { HeldEvents } from './held-events.ts';
import type { PlanFeed } from './plan-feed.ts';
import { endpointFields, expectedShares, noEndpoint } from './report.ts';

type ForwardedFeed = Pick<PlanFeed, 'family' | 'plans' | 'placements'>;

export interface ForwardedTrafficOptions {
  readonly feeds: readonly ForwardedFeed[];
  /** What the process counted since it began. */
  readonly forwarded: () => Promise<readonly ForwardedPort[]>;
  /** Which connections got which endpoint since the last call. */
  readonly connections: () => Promise<ForwardedConnections>;
  /** Whether there can be rules that refuse connections before they reach the process. */
  readonly hasRules: () => boolean;
  /** Milliseconds since the Unix epoch. */
  readonly since: number;
  /** Tells about clients, refused connections and flows, as far as the kernel lets us. */
  readonly kernel: TrafficSource;
  readonly clock: Clock;
}

const noFailures: FailedConnections = { rejected: 0, dropped: 0, filtered: 0, reset: 0, unanswered: 0 };

/**
 * The traffic of a process that forwards connections itself. It counts them, with their endpoints. The kernel sees only
 * connections to the process, and tells who made them and when; the process tells which endpoint each got.
 */
export class ForwardedTraffic implements TrafficSource {
  readonly #options: ForwardedTrafficOptions;
  readonly #endpoints: ForwardedEndpoints;

  constructor(options: ForwardedTrafficOptions) {
    this.#options = options;
    this.#endpoints = new ForwardedEndpoints(options.connections, options.feeds, options.clock);
  }

  async figures(wish: TrafficWish): Promise<TrafficAnswer> {
    const { kernel, since } = this.#options;
    if (wish.by === 'client') return kernel.figures(wish);
    const { failures, warning } = await this.#refused(async () => {
      const refused = await kernel.figures({ ...wish, by: 'service', withIdle: false });
      return {
        warning: refused.warning,
        ports: refused.items.map((figures) => ({ key: figures.service, family: figures.family, figures })),
      };
    });
    const items: TrafficItem[] = [];
    await this.#forEachPort(failures, (plan, port, failed, feed) => {
      if (!wish.isWanted(plan) || (!hasTraffic(port) && !failed && !wish.withIdle)) return;
      if (wish.by === 'endpoint') items.push(...endpointItems(plan, port, feed, wish.withIdle));
      else items.push({ ...itemOf(plan), ...portFigures(port, failed) });
    });
    return { items, since, lostEvents: 0, leftOut: 0, warning };
  }

  /** The process counts everything itself, except connections that do not reach it. */
  async openMeter(kinds: ReadonlySet<MeteredKind>): Promise<TrafficMeter> {
    const { kernel, hasRules } = this.#options;
    const asksKernel = kinds.has('refusals') && hasRules();
    const meter = asksKernel ? await kernel.openMeter(new Set(['refusals'])) : undefined;
    return {
      read: async () => {
        const { failures } = await this.#refused(async () => {
          const refused = (await meter?.read()) ?? [];
          return { warning: null, ports: refused.map(({ port, figures }) => ({ ...port, figures })) };
        });
        const ports: MeteredPort[] = [];
        await this.#forEachPort(failures, (plan, port, failed) => {
          if (hasTraffic(port) || failed) ports.push({ port: plan.port, figures: portFigures(port, failed) });
        });
        return ports;
      },
    };
  }

  async flows(isWanted: FlowFilter, write: Parameters<TrafficSource['flows']>[1]): Promise<void> {
    const endpoints = this.#endpoints;
    await endpoints.update();
    await this.#options.kernel.flows(
      (flow, plan) => isWanted(endpoints.placed(flow), plan),
      (flows) => write(flows.map((flow) => endpoints.placed(flow))),
    );
  }

  async watch(...[isWanted, onEvent, onEnd]: Parameters<TrafficSource['watch']>): Promise<() => void> {
    const { kernel, clock } = this.#options;
    const plans = new Map<string, PlannedPort>();
    const held = new HeldEvents(this.#endpoints, clock, (event) => {
      const plan = event.flow && plans.get(planId(event.flow));
      if (!event.flow || (plan && isWanted(event.flow, plan))) onEvent(event);
    });
    await held.start();
    const remember = (flow: FlowItem, plan: PlannedPort) => plans.set(planId(flow), plan).size > 0;
    const ended = () => {
      held.flush();
      held.close();
      onEnd();
    };
    try {
      const end = await kernel.watch(remember, (event) => held.add(event), ended);
      return () => {
        held.close();
        end();
      };
    } catch (error) {
      held.close();
      throw error;
    }
  }

  /** Visits every service port, in slices of time. */
  async #forEachPort(
    failures: ReadonlyMap<string, RefusedConnections>,
    visit: (
      plan: PlannedPort,
      port: ForwardedPort | undefined,
      failed: RefusedConnections | undefined,
      feed: ForwardedFeed,
    ) => void,
  ): Promise<void> {
    const { forwarded, feeds, clock } = this.#options;
    const counted = new Map((await forwarded()).map((port) => [idOf(port), port]));
    const timeSlice = new TimeSlice(clock, reportSliceMs);
    for (const feed of feeds) {
      for (const plan of feed.plans.values()) {
        const id = idOf(plan.port);
        visit(plan, counted.get(id), failures.get(id), feed);
        if (timeSlice.isSpent) await timeSlice.yield();
      }
    }
  }

  /** Connections that the rules of the proxy refuse before they reach the process. */
  async #refused(
    read: () => Promise<{
      readonly warning: string | null;
      readonly ports: readonly (PortId & { readonly figures: TrafficFigures })[];
    }>,
  ) {
    const failures = new Map<string, RefusedConnections>();
    if (!this.#options.hasRules()) return { failures, warning: null };
    try {
      const { ports, warning } = await read();
      for (const port of ports) {
        const { rejected, dropped, filtered } = port.figures.failed;
        failures.set(idOf(port), { rejected, dropped, filtered });
      }
      return { failures, warning };
    } catch (error) {
      return { failures, warning: `connections that rules refuse are not counted: ${messageOf(error)}` };
    }
  }
}

function planId({ family, service }: FlowItem): string {
  return idOf({ family, key: service });
}

type PortId = Pick<ServicePort, 'key' | 'family'>;
type RefusedConnections = Pick<FailedConnections, 'rejected' | 'dropped' | 'filtered'>;

function idOf({ family, key }: PortId): string {
  return `${family} ${key}`;
}

function itemOf({ port }: PlannedPort): Omit<TrafficItem, keyof TrafficFigures> {
  return { service: port.key, family: port.family, ...noEndpoint, client: null };
}

function endpointItems(
  plan: PlannedPort,
  port: ForwardedPort | undefined,
  feed: ForwardedFeed,
  withIdle: boolean,
): TrafficItem[] {
  const shares = expectedShares(plan, plan.balance);
  const { byEndpoint } = feed.placements(plan.port);
  const endpoints = new Map(port?.endpoints.map((each) => [each.endpoint, each]));
  const idle = withIdle ? plan.endpoints.map(({ id }) => id) : [];
  return [...new Set([...endpoints.keys(), ...idle])].map((endpoint) => {
    const found = endpoints.get(endpoint);
    const failed = { ...noFailures, reset: found?.dialFailures ?? 0 };
    const fields = endpointFields(endpoint, byEndpoint.get(endpoint) ?? {}, shares);
    return { ...itemOf(plan), ...fields, ...figuresOf(found, failed) };
  });
}

function portFigures(
  port: ForwardedPort | undefined,
  failed: RefusedConnections | undefined,
): TrafficFigures {
  const rejected = (failed?.rejected ?? 0) + (port?.unserved ?? 0);
  return figuresOf(port, { ...noFailures, ...failed, rejected });
}

function hasTraffic(port: ForwardedPort | undefined): boolean {
  return port !== undefined && port.connections + port.unserved > 0;
}

function figuresOf(volume: ForwardedVolume | undefined, failed: FailedConnections): TrafficFigures {
  const { connections = 0, open = 0, bytesIn = 0, bytesOut = 0 } = volume ?? {};
  return {
    opened: connections,
    ended: connections - open,
    open,
    packetsToEndpoint: null,
    packetsToClient: null,
    bytesToEndpoint: bytesIn,
    bytesToClient: bytesOut,
    failed,
  };
}
