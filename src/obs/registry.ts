import type { Clock } from '../lib/clock.ts';
import type { Descriptor, LabelPair, MetricFamily, MetricType, ValueSeries } from './family.ts';
import { StoredHistogram, StoredValue } from './metric-kinds.ts';
import type {
  Counter,
  Gauge,
  Histogram,
  MetricOptions,
  Sample,
  ScrapedMetric,
  Stability,
} from './metrics.ts';

/** Yields metrics at each scrape, and no others than those in `families`. */
export interface Collector {
  readonly families: readonly Descriptor[];
  collect(): readonly MetricFamily[] | Promise<readonly MetricFamily[]>;
}

export interface RegistryOptions {
  readonly clock: Clock;
  /** Called when a collector failed or took too long; the scrape goes on without it. */
  readonly onCollectError: (error: unknown, metrics: readonly string[]) => void;
  /** Milliseconds a collector may take; 4.5 s when absent. */
  readonly collectTimeout?: number;
}

/**
 * Prometheus gives a scrape 10 s. Twice this time is less: a scrape may wait for the page of another one before its own is
 * made. On an overloaded machine, collectors that need a thread take seconds, and a counter that is missing does more harm
 * than a late answer.
 */
const defaultCollectTimeout = 4_500;

const validName = /^[a-zA-Z_:][a-zA-Z0-9_:]*$/;
const validLabel = /^[a-zA-Z_][a-zA-Z0-9_]*$/;

/** The metrics of one page. Names are unique; a second registration of a name throws. */
export class Registry {
  readonly #options: RegistryOptions;
  readonly #collectors: Collector[] = [];
  readonly #names = new Set<string>();
  readonly #stored: { clear(): void }[] = [];
  readonly #stabilities = new Map<Stability, number>();
  readonly #running = new Map<Collector, Promise<readonly MetricFamily[]>>();

  constructor(options: RegistryOptions) {
    this.#options = options;
  }

  counter(options: MetricOptions): Counter {
    return this.#value('counter', options);
  }

  gauge(options: MetricOptions): Gauge {
    return this.#value('gauge', options);
  }

  histogram(options: MetricOptions & { readonly buckets: readonly number[] }): Histogram {
    const metric = new StoredHistogram(options.name, options.labels ?? [], options.buckets);
    const descriptor = this.#describe(options, 'histogram');
    this.#store(descriptor, metric, () => ({ ...descriptor, series: metric.series() }));
    return metric;
  }

  /** Declares a counter or gauge whose series are read at scrape time. */
  scraped(type: 'counter' | 'gauge', options: MetricOptions): ScrapedMetric {
    const descriptor = this.#describe(options, type);
    const names = [...(options.labels ?? [])].sort();
    let reader: Parameters<ScrapedMetric['readFrom']>[0] = () => [];
    this.register({
      families: [descriptor],
      collect: async () => {
        const series = (await reader()).map((sample) => toSeries(options.name, names, sample));
        return [{ ...descriptor, series }];
      },
    });
    return {
      readFrom(read) {
        reader = read;
      },
    };
  }

  /** Adds a collector. Throws when one of its names is registered already or is not a metric name. */
  register(collector: Collector): void {
    for (const { name } of collector.families) {
      if (!validName.test(name)) throw new TypeError(`"${name}" is not a metric name`);
      if (this.#names.has(name)) throw new TypeError(`metric ${name} is registered twice`);
      this.#names.add(name);
    }
    this.#collectors.push(collector);
  }

  /** Returns the metrics that have at least one series, sorted by name; with `only`, just those names. */
  async gather(only?: ReadonlySet<string>): Promise<MetricFamily[]> {
    const wanted = this.#collectors.filter((c) => !only || c.families.some(({ name }) => only.has(name)));
    const gathered = await Promise.all(wanted.map((collector) => this.#collect(collector)));
    return gathered
      .flat()
      .filter((family) => family.series.length > 0 && (!only || only.has(family.name)))
      .sort((a, b) => (a.name < b.name ? -1 : 1));
  }

  /** Clears all stored values, as if the process had just started. */
  reset(): void {
    for (const metric of this.#stored) metric.clear();
  }

  /** Returns how many metrics of each stability were declared. */
  stabilities(): ReadonlyMap<Stability, number> {
    return this.#stabilities;
  }

  #describe<T extends MetricType>(options: MetricOptions, type: T) {
    const { name, help, stability } = options;
    for (const label of options.labels ?? []) {
      if (!validLabel.test(label) || label === 'le')
        throw new TypeError(`metric ${name}: bad label ${label}`);
    }
    if (stability) this.#stabilities.set(stability, (this.#stabilities.get(stability) ?? 0) + 1);
    return { name, type, help: stability ? `[${stability}] ${help}` : help };
  }

  #value(type: 'counter' | 'gauge', options: MetricOptions): StoredValue {
    const metric = new StoredValue(options.name, options.labels ?? []);
    const descriptor = this.#describe(options, type);
    this.#store(descriptor, metric, () => ({ ...descriptor, series: metric.series() }));
    return metric;
  }

  #store(descriptor: Descriptor, metric: { clear(): void }, show: () => MetricFamily): void {
    this.register({ families: [descriptor], collect: () => [show()] });
    this.#stored.push(metric);
  }

  async #collect(collector: Collector): Promise<readonly MetricFamily[]> {
    try {
      const result = this.#running.get(collector) ?? collector.collect();
      return result instanceof Promise ? await this.#withTimeLimit(collector, result) : result;
    } catch (error) {
      this.#options.onCollectError(
        error,
        collector.families.map(({ name }) => name),
      );
      return [];
    }
  }

  /** Does not call a hanging collector again until it has answered, so that scrapes do not pile up behind it. */
  async #withTimeLimit(collector: Collector, result: Promise<readonly MetricFamily[]>) {
    this.#running.set(collector, result);
    const forget = () => this.#running.delete(collector);
    result.then(forget, forget);
    const limit = this.#options.collectTimeout ?? defaultCollectTimeout;
    const { promise, reject } = Promise.withResolvers<never>();
    const timer = this.#options.clock.setTimeout(() => reject(new Error(`no answer in ${limit} ms`)), limit);
    try {
      return await Promise.race([result, promise]);
    } finally {
      timer.cancel();
    }
  }
}

function toSeries(metric: string, names: readonly string[], sample: Sample): ValueSeries {
  const labels = names.map((name): LabelPair => {
    const value = sample.labels[name];
    if (value === undefined) throw new TypeError(`metric ${metric}: label ${name} is missing`);
    return [name, value];
  });
  return { labels, value: sample.value };
}
