import {
  type Counter,
  type Gauge,
  type Histogram,
  ignoredMetric,
  type MetricOptions,
  type ScrapedMetric,
} from './metrics.ts';
import type { Registry } from './registry.ts';

export type MetricsMode = 'iptables' | 'ipvs' | 'nftables' | 'userspace';

/** Registers a metric in the modes it belongs to; elsewhere gives one that ignores its values. */
export class Declarer {
  readonly #registry: Registry;
  readonly #mode: MetricsMode;

  constructor(registry: Registry, mode: MetricsMode) {
    this.#registry = registry;
    this.#mode = mode;
  }

  /** Without a list of modes a metric belongs to all of them. */
  #here(modes: readonly MetricsMode[] | undefined): boolean {
    return modes === undefined || modes.includes(this.#mode);
  }

  counter(name: string, help: string, labels: readonly string[], modes?: readonly MetricsMode[]): Counter {
    return this.#here(modes) ? this.#registry.counter(options(name, help, labels)) : ignoredMetric;
  }

  gauge(name: string, help: string, labels: readonly string[], modes?: readonly MetricsMode[]): Gauge {
    return this.#here(modes) ? this.#registry.gauge(options(name, help, labels)) : ignoredMetric;
  }

  durations(name: string, help: string, buckets: number[], modes?: readonly MetricsMode[]): Histogram {
    if (!this.#here(modes)) return ignoredMetric;
    return this.#registry.histogram({ ...options(name, help, ['ip_family']), buckets });
  }

  scraped(
    type: 'counter' | 'gauge',
    name: string,
    help: string,
    labels: readonly string[],
    modes?: readonly MetricsMode[],
  ): ScrapedMetric {
    return this.#here(modes) ? this.#registry.scraped(type, options(name, help, labels)) : ignoredMetric;
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
