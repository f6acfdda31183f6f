import type { ScrapedMetric } from './metrics.ts';
import type { Declarer } from './proxy-metric-declarer.ts';

/** Traffic through this process in userspace mode. Labels: service, endpoint; for bytes also direction (in, out). */
export interface UserspaceMetrics {
  readonly userspaceConnections: ScrapedMetric;
  readonly userspaceOpen: ScrapedMetric;
  readonly userspaceBytes: ScrapedMetric;
  readonly userspaceDialFailures: ScrapedMetric;
}

/** Ours: upstream's userspace mode counted nothing. */
export function userspaceMetrics(declare: Declarer): UserspaceMetrics {
  const labels = ['service', 'endpoint'];
  return {
    userspaceConnections: declare.scraped(
      'counter',
      'ts_userspace_connections_total',
      'Connections and UDP sessions begun with an endpoint',
      labels,
    ),
    userspaceOpen: declare.scraped(
      'gauge',
      'ts_userspace_open_connections',
      'Connections and UDP sessions open with an endpoint',
      labels,
    ),
    userspaceBytes: declare.scraped(
      'counter',
      'ts_userspace_bytes_total',
      'Bytes passed on to (in) and from (out) an endpoint',
      [...labels, 'direction'],
    ),
    userspaceDialFailures: declare.scraped(
      'counter',
      'ts_userspace_dial_failures_total',
      'Attempts to reach an endpoint that failed',
      labels,
    ),
  };
}
