import type { TrafficSource } from '../inspect/traffic.ts';
import type { TrafficItem } from '../inspect/traffic-api.ts';
import { type Clock, systemClock } from '../lib/clock.ts';
import type { Labels, Sample } from '../obs/metrics.ts';
import type { Registry } from '../obs/registry.ts';
import type { PlannedPort } from '../plan/plan.ts';

export interface ServiceMetricsOptions {
  /** `connections`, `bytes`. */
  readonly kinds: ReadonlySet<string>;
  /** Service ports with series of their own; all others share one. */
  readonly max: number;
  readonly source: () => Promise<TrafficSource>;
  readonly clock: Clock;
}

/** Declares all of them, for lists of metrics; they have no values. */
export const anyServiceMetrics: ServiceMetricsOptions = {
  kinds: new Set(['connections', 'bytes']),
  max: 0,
  source: () => Promise.reject(new Error('no traffic is counted')),
  clock: systemClock,
};

/** Looking at the whole table at every scrape would cost more than the events. */
const maxAgeMs = 60_000;
/** Metrics of one scrape share a look at the figures. */
const sameScrapeMs = 500;

const labelNames = ['namespace', 'service', 'port'];
const others: Labels = { namespace: '', service: 'other', port: '' };

type Reading = ReadonlyMap<string, { readonly labels: Labels; readonly items: readonly TrafficItem[] }>;

/** Declares metrics of the traffic of Services, whose values are read at scrape time. */
export function registerServiceMetrics(registry: Registry, options: ServiceMetricsOptions): void {
  const series = new ServiceSeries(options);
  const declare = (
    type: 'counter' | 'gauge',
    name: string,
    help: string,
    values: (items: readonly TrafficItem[]) => readonly (readonly [number, Labels?])[],
    more: readonly string[] = [],
  ) => {
    const metric = registry.scraped(type, {
      name: `kubeproxy_ts_service_${name}`,
      help,
      labels: [...labelNames, ...more],
      stability: 'ALPHA',
    });
    metric.readFrom(async () => samplesOf(await series.read(), values));
  };
  const sum = (items: readonly TrafficItem[], of: (item: TrafficItem) => number | null) =>
    items.reduce((total, item) => total + (of(item) ?? 0), 0);
  if (options.kinds.has('connections')) {
    declare('counter', 'connections_total', 'Connections to a Service', (items) => [
      [sum(items, ({ opened }) => opened)],
    ]);
    declare('gauge', 'open_connections', 'Connections to a Service that are open', (items) => [
      [sum(items, ({ open }) => open)],
    ]);
    declare(
      'counter',
      'failed_connections_total',
      'Connections to a Service that failed, by reason',
      (items) =>
        (['rejected', 'dropped', 'filtered', 'reset', 'unanswered'] as const).map(
          (reason) => [sum(items, ({ failed }) => failed[reason]), { reason }] as const,
        ),
      ['reason'],
    );
  }
  if (options.kinds.has('bytes')) {
    declare(
      'counter',
      'bytes_total',
      'Bytes to a Service (direction in) and to its clients (direction out)',
      (items) => [
        [sum(items, ({ bytesToEndpoint }) => bytesToEndpoint), { direction: 'in' }],
        [sum(items, ({ bytesToClient }) => bytesToClient), { direction: 'out' }],
      ],
      ['direction'],
    );
  }
}

function samplesOf(
  reading: Reading,
  values: (items: readonly TrafficItem[]) => readonly (readonly [number, Labels?])[],
): Sample[] {
  return [...reading.values()].flatMap(({ labels, items }) =>
    values(items).map(([value, more]) => ({ value, labels: { ...labels, ...more } })),
  );
}

/** Assigns service ports to series: the first ones with traffic have their own, as long as they exist. */
class ServiceSeries {
  readonly #options: ServiceMetricsOptions;
  #own = new Set<string>();
  #last: { readonly at: number; readonly reading: Promise<Reading> } | undefined;

  constructor(options: ServiceMetricsOptions) {
    this.#options = options;
  }

  read(): Promise<Reading> {
    const now = this.#options.clock.monotonic();
    if (!this.#last || now - this.#last.at >= sameScrapeMs) this.#last = { at: now, reading: this.#read() };
    return this.#last.reading;
  }

  async #read(): Promise<Reading> {
    const ports = new Map<string, Labels>();
    const isWanted = ({ port }: PlannedPort) => {
      const { namespace, name, portName } = port;
      ports.set(port.key, { namespace, service: name, port: portName || String(port.port) });
      return true;
    };
    const source = await this.#options.source();
    const { items } = await source.figures({ by: 'service', isWanted, withIdle: false, maxAgeMs });
    const byService = Map.groupBy(items, ({ service }) => service);
    this.#own = new Set([...this.#own].filter((key) => byService.has(key)));
    const reading = new Map<string, { labels: Labels; items: TrafficItem[] }>();
    for (const [key, group] of byService) {
      if (this.#own.size < this.#options.max) this.#own.add(key);
      const isOwn = this.#own.has(key);
      const labels = isOwn ? (ports.get(key) ?? others) : others;
      const known = reading.get(isOwn ? key : '') ?? { labels, items: [] };
      known.items.push(...group);
      reading.set(isOwn ? key : '', known);
    }
    return reading;
  }
}
