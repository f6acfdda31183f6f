import type { monitorEventLoopDelay, PerformanceEntry } from 'node:perf_hooks';
import { describeGauge as gauge, type MetricFamily, oneValue as one } from './family.ts';
import type { Histogram } from './metrics.ts';
import type { Registry } from './registry.ts';

type Delays = ReturnType<typeof monitorEventLoopDelay>;

/** Milliseconds between two samples of the event loop. */
const resolution = 100;

const lag = {
  mean: gauge('nodejs_eventloop_lag_seconds', 'Mean delay of the event loop since the last scrape'),
  p99: gauge('nodejs_eventloop_lag_p99_seconds', 'Delay that 99 of 100 looks at the event loop stayed below'),
  max: gauge('nodejs_eventloop_lag_max_seconds', 'Longest delay of the event loop since the last scrape'),
};

const heap = {
  total: gauge('nodejs_heap_size_total_bytes', 'Heap that V8 holds'),
  used: gauge('nodejs_heap_size_used_bytes', 'Heap that is in use'),
  external: gauge('nodejs_external_memory_bytes', 'Memory outside the heap that its objects hold'),
};

/** V8's kinds of collection, by the number that a performance entry carries. */
const gcKinds: Readonly<Record<number, string>> = { 1: 'minor', 4: 'major', 8: 'incremental', 16: 'weakcb' };

/**
 * Declares metrics about the JavaScript runtime, under the names that Node dashboards expect. Measuring starts with the
 * first scrape, so a process that is never scraped does not pay for it.
 */
export function registerRuntimeMetrics(registry: Registry): void {
  const gcDuration = registry.histogram({
    name: 'nodejs_gc_duration_seconds',
    help: 'Time of garbage collections by kind: minor, major, incremental, weakcb',
    labels: ['kind'],
    buckets: [0.001, 0.01, 0.1, 1, 2, 5],
  });
  let watched: Promise<Delays> | undefined;
  registry.register({
    families: [...Object.values(lag), ...Object.values(heap)],
    async collect() {
      watched ??= watch(gcDuration);
      return [...readLag(await watched), ...readHeap()];
    },
  });
}

async function watch(gcDuration: Histogram): Promise<Delays> {
  const { monitorEventLoopDelay, PerformanceObserver } = await import('node:perf_hooks');
  const observer = new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) recordCollection(entry, gcDuration);
  });
  observer.observe({ entryTypes: ['gc'] });
  const delays = monitorEventLoopDelay({ resolution });
  delays.enable();
  return delays;
}

function recordCollection(entry: PerformanceEntry, gcDuration: Histogram): void {
  const detail: unknown = 'detail' in entry ? entry.detail : undefined;
  const kind = typeof detail === 'object' && detail && 'kind' in detail ? Number(detail.kind) : 0;
  gcDuration.observe(entry.duration / 1000, { kind: gcKinds[kind] ?? 'other' });
}

function readLag(delays: Delays): MetricFamily[] {
  const quiet = delays.count === 0;
  // Node measures the whole interval between two samples, in nanoseconds.
  const seconds = (value: number) => (quiet ? 0 : Math.max(0, value / 1e9 - resolution / 1000));
  const families = [
    one(lag.mean, seconds(delays.mean)),
    one(lag.p99, seconds(delays.percentile(99))),
    one(lag.max, seconds(delays.max)),
  ];
  delays.reset();
  return families;
}

function readHeap(): MetricFamily[] {
  const { heapTotal, heapUsed, external } = process.memoryUsage();
  return [one(heap.total, heapTotal), one(heap.used, heapUsed), one(heap.external, external)];
}
