import type { MeteredKind, MeteredPort, TrafficMeter } from '../inspect/traffic.ts';
import { type Clock, systemClock } from '../lib/clock.ts';
import type { Labels } from '../obs/metrics.ts';
import type { Registry } from '../obs/registry.ts';

export interface ServiceMetricsOptions {
  /** `connections`, `bytes`. */
  readonly kinds: ReadonlySet<string>;
  /** Service ports with series of their own; all others share one. */
  readonly max: number;
  readonly meter: TrafficMeter;
  readonly clock: Clock;
}

/** What is counted for these metrics. */
export function meteredKinds(kinds: ReadonlySet<string>): ReadonlySet<MeteredKind> {
  const metered = new Set<MeteredKind>();
  if (kinds.has('bytes')) metered.add('bytes');
  if (kinds.has('connections')) metered.add('connections').add('refusals');
  return metered;
}

/** Declares all of them, for lists of metrics; they have no values. */
export const anyServiceMetrics: ServiceMetricsOptions = {
  kinds: new Set(['connections', 'bytes']),
  max: 0,
  meter: { read: () => Promise.reject(new Error('no traffic is counted')) },
  clock: systemClock,
};

/** Metrics of one scrape share a look at the figures. */
const sameScrapeMs = 500;

const labelNames = ['namespace', 'service', 'port'];
const othersLabels: Labels = { namespace: '', service: 'other', port: '' };

const failures = ['rejected', 'dropped', 'filtered', 'reset', 'unanswered'] as const;
const totals = ['opened', 'bytesIn', 'bytesOut', ...failures] as const;
/** What metrics show of some service ports together. */
type Sums = Record<(typeof totals)[number] | 'open', number>;
type Series = { readonly labels: Labels; readonly sums: Sums };

/** Declares metrics of the traffic of Services, whose values are read at scrape time. */
export function registerServiceMetrics(registry: Registry, options: ServiceMetricsOptions): void {
  const series = new ServiceSeries(options);
  const declare = (
    type: 'counter' | 'gauge',
    name: string,
    help: string,
    values: (sums: Sums) => readonly (readonly [number, Labels?])[],
    more: readonly string[] = [],
  ) => {
    const metric = registry.scraped(type, {
      name: `kubeproxy_ts_service_${name}`,
      help,
      labels: [...labelNames, ...more],
      stability: 'ALPHA',
    });
    metric.readFrom(async () =>
      (await series.read()).flatMap(({ labels, sums }) =>
        values(sums).map(([value, more]) => ({ value, labels: { ...labels, ...more } })),
      ),
    );
  };
  if (options.kinds.has('connections')) {
    declare('counter', 'connections_total', 'Connections to a Service', ({ opened }) => [[opened]]);
    declare('gauge', 'open_connections', 'Connections to a Service that are open', ({ open }) => [[open]]);
    declare(
      'counter',
      'failed_connections_total',
      'Connections to a Service that failed, by reason',
      (sums) => failures.map((reason) => [sums[reason], { reason }]),
      ['reason'],
    );
  }
  if (options.kinds.has('bytes')) {
    declare(
      'counter',
      'bytes_total',
      'Bytes to a Service (direction in) and to its clients (direction out)',
      ({ bytesIn, bytesOut }) => [
        [bytesIn, { direction: 'in' }],
        [bytesOut, { direction: 'out' }],
      ],
      ['direction'],
    );
  }
}

/** Assigns service ports to series: the first ones with traffic have their own, as long as they exist. */
class ServiceSeries {
  readonly #options: ServiceMetricsOptions;
  readonly #others = noSums();
  /** Service ports that count for the others, as of the last reading. */
  #before = new Map<string, Sums>();
  #own = new Set<string>();
  #last: { readonly at: number; readonly reading: Promise<readonly Series[]> } | undefined;

  constructor(options: ServiceMetricsOptions) {
    this.#options = options;
  }

  read(): Promise<readonly Series[]> {
    const now = this.#options.clock.monotonic();
    if (!this.#last || now - this.#last.at >= sameScrapeMs) this.#last = { at: now, reading: this.#read() };
    return this.#last.reading;
  }

  async #read(): Promise<readonly Series[]> {
    const byService = Map.groupBy(await this.#options.meter.read(), ({ port }) => port.key);
    this.#own = new Set([...this.#own].filter((key) => byService.has(key)));
    const series: Series[] = [];
    const others = new Map<string, Sums>();
    for (const [key, ports] of byService) {
      if (this.#own.size < this.#options.max) this.#own.add(key);
      const sums = sumsOf(ports);
      if (this.#own.has(key)) series.push({ labels: labelsOf(ports), sums });
      else others.set(key, sums);
    }
    this.#countOthers(others);
    if (others.size > 0) series.push({ labels: othersLabels, sums: { ...this.#others } });
    return series;
  }

  /** Adds what is new, so that totals do not go back when a service port leaves the others. */
  #countOthers(others: Map<string, Sums>): void {
    this.#others.open = 0;
    for (const [key, sums] of others) {
      const before = this.#before.get(key) ?? noSums();
      for (const name of totals) this.#others[name] += Math.max(0, sums[name] - before[name]);
      this.#others.open += sums.open;
    }
    this.#before = others;
  }
}

function noSums(): Sums {
  return {
    opened: 0,
    open: 0,
    bytesIn: 0,
    bytesOut: 0,
    rejected: 0,
    dropped: 0,
    filtered: 0,
    reset: 0,
    unanswered: 0,
  };
}

function sumsOf(ports: readonly MeteredPort[]): Sums {
  const sums = noSums();
  for (const { figures } of ports) {
    sums.opened += figures.opened;
    sums.open += figures.open;
    sums.bytesIn += figures.bytesToEndpoint ?? 0;
    sums.bytesOut += figures.bytesToClient ?? 0;
    for (const reason of failures) sums[reason] += figures.failed[reason];
  }
  return sums;
}

function labelsOf([first]: readonly MeteredPort[]): Labels {
  if (!first) return othersLabels;
  const { namespace, name, portName, port } = first.port;
  return { namespace, service: name, port: portName || String(port) };
}
