import type { ForwardedConnections, ForwardedPort, ForwardedVolume } from '../backends/mode.ts';
import type { FlowFilter, TrafficAnswer, TrafficSource, TrafficWish } from '../inspect/traffic.ts';
import type { FailedConnections, FlowItem, TrafficFigures, TrafficItem } from '../inspect/traffic-api.ts';
import type { Clock } from '../lib/clock.ts';
import { messageOf } from '../lib/thrown.ts';
import type { PlannedPort } from '../plan/plan.ts';
import { ForwardedEndpoints } from './forwarded-endpoints.ts';
import { HeldEvents } from './held-events.ts';
import type { PlanFeed } from './observation.ts';
import { endpointFields, expectedShares, noEndpoint } from './report.ts';

export interface ForwardedTrafficOptions {
  readonly feeds: readonly Pick<PlanFeed, 'family' | 'plans' | 'placements'>[];
  /** What the process counted since it began. */
  readonly forwarded: () => Promise<readonly ForwardedPort[]>;
  /** Which connections got which endpoint since the last call. */
  readonly connections: () => Promise<ForwardedConnections>;
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
    const { kernel, forwarded, since } = this.#options;
    if (wish.by === 'client') return kernel.figures(wish);
    const counted = new Map((await forwarded()).map((port) => [`${port.family} ${port.key}`, port]));
    const refused = await this.#refused(wish);
    const items = this.#options.feeds.flatMap((feed) =>
      [...feed.plans.values()].flatMap((plan) => {
        const { family } = feed;
        const id = `${family} ${plan.port.key}`;
        const port = counted.get(id);
        const failed = refused.failures.get(id);
        if (!wish.isWanted(plan) || (!hasTraffic(port) && !failed && !wish.withIdle)) return [];
        const base = { service: plan.port.key, family, ...noEndpoint, client: null };
        const failures = { ...noFailures, ...failed };
        if (wish.by === 'service') {
          const rejected = failures.rejected + (port?.unserved ?? 0);
          return [{ ...base, ...figuresOf(port, { ...failures, rejected }) }];
        }
        const shares = expectedShares(plan);
        const { byEndpoint } = feed.placements(plan.port);
        const endpoints = new Map(port?.endpoints.map((each) => [each.endpoint, each]));
        const ids = new Set([
          ...endpoints.keys(),
          ...(wish.withIdle ? plan.endpoints.map((each) => each.id) : []),
        ]);
        return [...ids].map((endpoint): TrafficItem => {
          const found = endpoints.get(endpoint);
          const reset = found?.dialFailures ?? 0;
          const fields = endpointFields(endpoint, byEndpoint.get(endpoint) ?? {}, shares);
          return { ...base, ...fields, ...figuresOf(found, { ...noFailures, reset }) };
        });
      }),
    );
    return { items, since, lostEvents: 0, leftOut: 0, warning: refused.warning };
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

  keepCounting(): void {
    this.#options.kernel.keepCounting();
  }

  /** Connections that the rules of the proxy refuse before they reach the process. */
  async #refused(wish: TrafficWish) {
    const failures = new Map<string, Partial<FailedConnections>>();
    try {
      const { items, warning } = await this.#options.kernel.figures({
        ...wish,
        by: 'service',
        withIdle: false,
      });
      for (const { family, service, failed } of items) {
        const { rejected, dropped, filtered } = failed;
        failures.set(`${family} ${service}`, { rejected, dropped, filtered });
      }
      return { failures, warning };
    } catch (error) {
      return { failures, warning: `connections that rules refuse are not counted: ${messageOf(error)}` };
    }
  }
}

function planId({ family, service }: FlowItem): string {
  return `${family} ${service}`;
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
