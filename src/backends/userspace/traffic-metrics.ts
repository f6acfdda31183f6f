import type { Forwarder, TrafficReport } from '../../forwarder/forwarder.ts';
import type { EndpointTraffic } from '../../forwarder/traffic.ts';
import type { Labels, Sample } from '../../obs/metrics.ts';
import type { UserspaceMetrics } from '../../obs/proxy-metrics.ts';

/** Has the metrics of this mode read from what the forwarder counts. */
export function showTraffic(forwarder: Pick<Forwarder, 'traffic'>, metrics: UserspaceMetrics): void {
  const show = (
    metric: keyof UserspaceMetrics,
    values: (traffic: EndpointTraffic) => readonly (readonly [number, Labels?])[],
  ): void => metrics[metric].readFrom(async () => samplesOf(await forwarder.traffic(), values));
  show('userspaceConnections', ({ connections }) => [[connections]]);
  show('userspaceOpen', ({ open }) => [[open]]);
  show('userspaceDialFailures', ({ dialFailures }) => [[dialFailures]]);
  show('userspaceBytes', ({ bytesIn, bytesOut }) => [
    [bytesIn, { direction: 'in' }],
    [bytesOut, { direction: 'out' }],
  ]);
}

function samplesOf(
  report: TrafficReport,
  values: (traffic: EndpointTraffic) => readonly (readonly [number, Labels?])[],
): Sample[] {
  return [...report].flatMap(([service, { endpoints }]) =>
    [...endpoints].flatMap(([endpoint, traffic]) =>
      values(traffic).map(([value, labels]) => ({ value, labels: { service, endpoint, ...labels } })),
    ),
  );
}
