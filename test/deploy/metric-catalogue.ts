import { allModes } from '../../src/app/modes.ts';
import { buildInfo } from '../../src/cli/version.ts';
import { registerBuildMetrics } from '../../src/obs/build-metrics.ts';
import { registerConntrackMetrics } from '../../src/obs/conntrack-metrics.ts';
import type { Counter, Gauge, Histogram, MetricOptions, ScrapedMetric } from '../../src/obs/metrics.ts';
import { registerProcessMetrics } from '../../src/obs/process-metrics.ts';
import { createProxyMetrics } from '../../src/obs/proxy-metrics.ts';
import { type Collector, Registry } from '../../src/obs/registry.ts';
import { createRestClientMetrics } from '../../src/obs/rest-client-metrics.ts';
import { registerRuntimeMetrics } from '../../src/obs/runtime-metrics.ts';
import { anyServiceMetrics, registerServiceMetrics } from '../../src/traffic/service-metrics.ts';
import { FakeClock } from '../fake-clock.ts';

/** Labels that Prometheus gives to every series. */
const scrapeLabels = ['job', 'instance'];

/** Records the declared metrics. */
class CatalogueRegistry extends Registry {
  readonly #catalogue: Map<string, Set<string>>;

  constructor(catalogue: Map<string, Set<string>>) {
    super({
      clock: new FakeClock(),
      onCollectError: (error) => {
        throw error;
      },
    });
    this.#catalogue = catalogue;
  }

  override counter(options: MetricOptions): Counter {
    this.#note(options.name, options.labels);
    return super.counter(options);
  }

  override gauge(options: MetricOptions): Gauge {
    this.#note(options.name, options.labels);
    return super.gauge(options);
  }

  override histogram(options: MetricOptions & { readonly buckets: readonly number[] }): Histogram {
    this.#note(`${options.name}_bucket`, [...(options.labels ?? []), 'le']);
    for (const part of ['sum', 'count']) this.#note(`${options.name}_${part}`, options.labels);
    return super.histogram(options);
  }

  override scraped(type: 'counter' | 'gauge', options: MetricOptions): ScrapedMetric {
    this.#note(options.name, options.labels);
    return super.scraped(type, options);
  }

  override register(collector: Collector): void {
    for (const { name, type } of collector.families) if (type !== 'histogram') this.#note(name);
    super.register(collector);
  }

  #note(name: string, labels: readonly string[] = []): void {
    const known = this.#catalogue.get(name) ?? new Set(scrapeLabels);
    for (const label of labels) known.add(label);
    this.#catalogue.set(name, known);
  }
}

/** Every series that a scrape of the proxy can have, in any mode, with its labels; `up` is of Prometheus itself. */
export async function metricCatalogue(): Promise<ReadonlyMap<string, ReadonlySet<string>>> {
  const catalogue = new Map([['up', new Set(scrapeLabels)]]);
  for (const mode of await allModes()) {
    const registry = new CatalogueRegistry(catalogue);
    registerBuildMetrics(registry, buildInfo(), []);
    registerProcessMetrics(registry);
    registerConntrackMetrics(registry);
    registerRuntimeMetrics(registry);
    createRestClientMetrics(registry);
    registerServiceMetrics(registry, anyServiceMetrics);
    createProxyMetrics(
      registry,
      mode.metricGroups(() => true),
    );
  }
  return catalogue;
}
