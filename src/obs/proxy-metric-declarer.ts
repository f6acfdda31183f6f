import {
  type Counter,
  type Gauge,
  type Histogram,
  ignoredMetric,
  type MetricOptions,
  type ScrapedMetric,
} from './metrics.ts';
import type { Registry } from './registry.ts';

/** Registers metrics of the proxy. Without a registry, the metrics accept values and are not exposed. */
export class Declarer {
  readonly #registry: Registry | undefined;

  constructor(registry: Registry | undefined) {
    this.#registry = registry;
  }

  counter(name: string, help: string, labels: readonly string[]): Counter {
    return this.#registry?.counter(options(name, help, labels)) ?? ignoredMetric;
  }

  gauge(name: string, help: string, labels: readonly string[]): Gauge {
    return this.#registry?.gauge(options(name, help, labels)) ?? ignoredMetric;
  }

  durations(name: string, help: string, buckets: number[]): Histogram {
    return this.#registry?.histogram({ ...options(name, help, ['ip_family']), buckets }) ?? ignoredMetric;
  }

  scraped(type: 'counter' | 'gauge', name: string, help: string, labels: readonly string[]): ScrapedMetric {
    return this.#registry?.scraped(type, options(name, help, labels)) ?? ignoredMetric;
  }
}

function options(name: string, help: string, labels: readonly string[]): MetricOptions {
  return { name: `kubeproxy_${name}`, help, labels, stability: 'ALPHA' };
}

/** Buckets of every sync duration: 1 ms doubling up to 16.384 s. */
export const syncBuckets = Array.from({ length: 15 }, (_, k) => 0.001 * 2 ** k);

/** Fine where a healthy cluster is, coarse up to five minutes. */
export const programmingBuckets = [
  0,
  0.25,
  0.5,
  ...steps(1, 59, 1),
  ...steps(60, 115, 5),
  ...steps(120, 300, 30),
];

function steps(first: number, last: number, step: number): number[] {
  return Array.from({ length: (last - first) / step + 1 }, (_, i) => first + i * step);
}
