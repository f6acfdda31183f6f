import type { ForwardedConnections } from '../backends/mode.ts';
import type { FlowItem } from '../inspect/traffic-api.ts';
import type { Clock } from '../lib/clock.ts';
import type { PlanFeed } from './plan-feed.ts';
import { SeenPlacements } from './seen-placements.ts';

/** Connections that are remembered: flows stay in the kernel's table for minutes after their end. */
const maxKnown = 200_000;

/** Knows which endpoint the process chose for a connection of the kernel's table. */
export class ForwardedEndpoints {
  readonly #read: () => Promise<ForwardedConnections>;
  readonly #feeds: readonly Pick<PlanFeed, 'family' | 'plans' | 'placements'>[];
  /** By family, service port and client. The oldest comes first. */
  readonly #endpoints = new Map<string, { readonly endpoint: string; readonly at: number }>();
  readonly #placements = new Map<string, SeenPlacements>();

  readonly #clock: Clock;

  constructor(
    read: () => Promise<ForwardedConnections>,
    feeds: readonly Pick<PlanFeed, 'family' | 'plans' | 'placements'>[],
    clock: Clock,
  ) {
    this.#read = read;
    this.#feeds = feeds;
    this.#clock = clock;
  }

  /** Takes over what the process has forwarded by now. Endpoints stay unknown when it does not answer. */
  async update(): Promise<void> {
    const report = await this.#read().catch(() => undefined);
    const at = this.#clock.monotonic();
    if (report?.startsOver) this.#endpoints.clear();
    for (const { family, key, client, endpoint } of report?.connections ?? []) {
      const id = `${family} ${key} ${client}`;
      this.#endpoints.delete(id);
      this.#endpoints.set(id, { endpoint, at });
    }
    for (const id of this.#endpoints.keys()) {
      if (this.#endpoints.size <= maxKnown) break;
      this.#endpoints.delete(id);
    }
  }

  /**
   * The flow with its endpoint and pod, as far as they are known; the kernel has an address of the process instead. What
   * was known before `since`, by the monotonic clock, is of an earlier connection from the same port.
   */
  placed(flow: FlowItem, since = 0): FlowItem {
    const known = this.#endpoints.get(`${flow.family} ${flow.service} ${flow.client}`);
    const endpoint = known && known.at >= since ? known.endpoint : null;
    const pod = endpoint === null ? undefined : this.#placementsOf(flow)?.of(endpoint).pod;
    return { ...flow, endpoint, pod: pod ?? null };
  }

  #placementsOf({ family, service }: FlowItem): SeenPlacements | undefined {
    const id = `${family} ${service}`;
    const known = this.#placements.get(id);
    if (known) return known;
    const feed = this.#feeds.find((each) => each.family === family);
    const plan = feed?.plans.get(service);
    if (!feed || !plan) return undefined;
    const placements = new SeenPlacements((earlier) => feed.placements(plan.port, earlier));
    this.#placements.set(id, placements);
    return placements;
  }
}
