/** The table of metrics, from what the program declares in each mode. */
import { allModes } from '../../src/app/modes.ts';
import type { Mode } from '../../src/backends/mode.ts';
import { buildInfo } from '../../src/cli/version.ts';
import { registerBuildMetrics } from '../../src/obs/build-metrics.ts';
import { registerConntrackMetrics } from '../../src/obs/conntrack-metrics.ts';
import type { MetricType } from '../../src/obs/family.ts';
import type { Counter, Gauge, Histogram, MetricOptions, ScrapedMetric } from '../../src/obs/metrics.ts';
import { registerProcessMetrics } from '../../src/obs/process-metrics.ts';
import { createProxyMetrics } from '../../src/obs/proxy-metrics.ts';
import { type Collector, Registry } from '../../src/obs/registry.ts';
import { createRestClientMetrics } from '../../src/obs/rest-client-metrics.ts';
import { registerRuntimeMetrics } from '../../src/obs/runtime-metrics.ts';
import { anyServiceMetrics, registerServiceMetrics } from '../../src/traffic/service-metrics.ts';
import { FakeClock } from '../../test/fake-clock.ts';
import { code, table } from './markdown.ts';
import { metricAdvice } from './metric-advice.ts';

const modes = await allModes();
const gate = 'KubeProxyNFTablesLocalhostNodePorts';

interface Declared {
  readonly type: MetricType;
  readonly help: string;
  readonly labels: readonly string[];
  readonly modes: Set<string>;
  /** Only with the feature gate on. */
  isGated: boolean;
}

/** Every metric that /metrics can have, in any mode, by its name. */
export async function declaredMetrics(): Promise<ReadonlyMap<string, Declared>> {
  const all = new Map<string, Declared>();
  // Without the gate last, so that a metric which needs it stays marked.
  for (const localhostNodePorts of [true, false]) {
    for (const mode of modes) {
      const registry = declareAll(mode, localhostNodePorts);
      for (const [name, { type, help, labels }] of await registry.declared()) {
        const known = all.get(name) ?? { type, help, labels, modes: new Set(), isGated: true };
        known.modes.add(mode.name);
        known.isGated &&= localhostNodePorts;
        all.set(name, known);
      }
    }
  }
  return all;
}

function declareAll(mode: Mode, localhostNodePorts: boolean): ListingRegistry {
  const registry = new ListingRegistry({
    clock: new FakeClock(),
    onCollectError: (error) => {
      throw error;
    },
  });
  registerBuildMetrics(registry, buildInfo(), []);
  registerProcessMetrics(registry);
  registerConntrackMetrics(registry);
  registerRuntimeMetrics(registry);
  createRestClientMetrics(registry);
  registerServiceMetrics(registry, anyServiceMetrics);
  createProxyMetrics(
    registry,
    mode.metricGroups(() => localhostNodePorts),
  );
  return registry;
}

/** One table for the proxy itself, one for everything around it. */
export async function metricReference(): Promise<string> {
  const all = [...(await declaredMetrics())].sort(([a], [b]) => (a < b ? -1 : 1));
  const isOwn = (name: string) => name.startsWith('kubeproxy_');
  const row = ([name, metric]: (typeof all)[number], advice: string[]) => [
    code(name),
    metric.type,
    metric.labels.map(code).join(', '),
    ...advice,
  ];
  const proxy = all.filter(([name]) => isOwn(name));
  const others = all.filter(([name]) => !isOwn(name));
  return [
    '### Of the proxy',
    table(
      ['Metric', 'Type', 'Labels', 'Modes', 'Meaning', 'What to do'],
      proxy.map((entry) => {
        const [name, metric] = entry;
        return row(entry, [modesText(metric), withoutStability(metric.help), metricAdvice[name] ?? '']);
      }),
    ),
    '### Of the API client, the process and the runtime',
    table(
      ['Metric', 'Type', 'Labels', 'Meaning'],
      others.map((entry) => row(entry, [withoutStability(entry[1].help)])),
    ),
  ].join('\n\n');
}

function modesText({ modes: found, isGated }: Declared): string {
  const names = found.size === modes.length ? 'all' : [...found].sort().join(', ');
  return isGated ? `${names}, with the gate ${code(gate)}` : names;
}

function withoutStability(help: string): string {
  return help.replace(/^\[[A-Z]+\] /, '');
}

/** Records the labels of metrics; a registry itself has them only for series. */
class ListingRegistry extends Registry {
  readonly #labels = new Map<string, readonly string[]>();
  readonly #families = new Map<string, { readonly type: MetricType; readonly help: string }>();

  override counter(options: MetricOptions): Counter {
    return super.counter(this.#note(options));
  }

  override gauge(options: MetricOptions): Gauge {
    return super.gauge(this.#note(options));
  }

  override histogram(options: MetricOptions & { readonly buckets: readonly number[] }): Histogram {
    return super.histogram(this.#note(options));
  }

  override scraped(type: 'counter' | 'gauge', options: MetricOptions): ScrapedMetric {
    return super.scraped(type, this.#note(options));
  }

  override register(collector: Collector): void {
    for (const { name, type, help } of collector.families) this.#families.set(name, { type, help });
    super.register(collector);
  }

  /** Returns metrics with their labels. The metric that counts the others has its labels only when it is read. */
  async declared() {
    const counted = await this.gather(new Set(['registered_metrics_total']));
    const seen = new Map(
      counted.map(({ name, series }) => [name, series[0]?.labels.map(([label]) => label)]),
    );
    return [...this.#families].map(
      ([name, family]) =>
        [name, { ...family, labels: this.#labels.get(name) ?? seen.get(name) ?? [] }] as const,
    );
  }

  #note<T extends MetricOptions>(options: T): T {
    this.#labels.set(options.name, options.labels ?? []);
    return options;
  }
}
