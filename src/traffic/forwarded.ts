import type { ForwardedPort, ForwardedVolume } from '../backends/mode.ts';
import type { FlowFilter, TrafficAnswer, TrafficSource, TrafficWish } from '../inspect/traffic.ts';
import type { FailedConnections, TrafficFigures, TrafficItem } from '../inspect/traffic-api.ts';
import { messageOf } from '../lib/thrown.ts';
import type { PlanFeed } from './observation.ts';
import { endpointFields, expectedShares, noEndpoint } from './report.ts';

export interface ForwardedTrafficOptions {
  readonly feeds: readonly Pick<PlanFeed, 'family' | 'plans' | 'placements'>[];
  /** What the process counted since it began. */
  readonly forwarded: () => Promise<readonly ForwardedPort[]>;
  /** Milliseconds since the Unix epoch. */
  readonly since: number;
  /** Tells about clients, refused connections and flows, as far as the kernel lets us. */
  readonly kernel: TrafficSource;
}

const noFailures: FailedConnections = { rejected: 0, dropped: 0, filtered: 0, reset: 0, unanswered: 0 };

/**
 * The traffic of a process that forwards connections itself. It counts them, with their endpoints. The kernel sees only
 * connections to the process, and tells who made them.
 */
export class ForwardedTraffic implements TrafficSource {
  readonly #options: ForwardedTrafficOptions;

  constructor(options: ForwardedTrafficOptions) {
    this.#options = options;
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

  flows(isWanted: FlowFilter, write: Parameters<TrafficSource['flows']>[1]): Promise<void> {
    return this.#options.kernel.flows(
      (flow, plan) => isWanted({ ...flow, endpoint: null }, plan),
      (flows) => write(flows.map((flow) => ({ ...flow, endpoint: null }))),
    );
  }

  watch(...[isWanted, onEvent, onEnd]: Parameters<TrafficSource['watch']>): Promise<() => void> {
    return this.#options.kernel.watch(
      (flow, plan) => isWanted({ ...flow, endpoint: null }, plan),
      (event) => onEvent({ ...event, flow: event.flow && { ...event.flow, endpoint: null } }),
      onEnd,
    );
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
