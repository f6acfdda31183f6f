import type { Mode } from '../backends/mode.ts';
import { type FeatureGates, knownGates } from '../config/feature-gates.ts';
import type { RestMetrics } from '../kube/rest-metrics.ts';
import type { BuildInfo } from '../lib/build-info.ts';
import { systemClock } from '../lib/clock.ts';
import { type FeatureState, registerBuildMetrics } from '../obs/build-metrics.ts';
import { registerConntrackMetrics } from '../obs/conntrack-metrics.ts';
import type { Logger } from '../obs/log.ts';
import { registerProcessMetrics } from '../obs/process-metrics.ts';
import { createProxyMetrics, type ProxyMetrics } from '../obs/proxy-metrics.ts';
import { Registry } from '../obs/registry.ts';
import { createRestClientMetrics } from '../obs/rest-client-metrics.ts';
import { registerRuntimeMetrics } from '../obs/runtime-metrics.ts';

export interface Metrics {
  readonly registry: Registry;
  readonly proxy: ProxyMetrics;
  readonly restClient: RestMetrics;
}

/** Declares everything that /metrics shows in this mode. */
export function createMetrics(mode: Mode, gates: FeatureGates, build: BuildInfo, logger: Logger): Metrics {
  const registry = new Registry({
    clock: systemClock,
    onCollectError: (error, metrics) => logger.error(error, 'Metrics are left out of a scrape', { metrics }),
  });
  registerBuildMetrics(registry, build, featureStates(gates));
  registerProcessMetrics(registry);
  registerConntrackMetrics(registry);
  registerRuntimeMetrics(registry);
  const client = createRestClientMetrics(registry);
  return {
    registry,
    proxy: createProxyMetrics(
      registry,
      mode.metricGroups((gate) => gates.enabled(gate)),
    ),
    restClient: { ...client, duration: client.requestDuration },
  };
}

function featureStates(gates: FeatureGates): FeatureState[] {
  return knownGates().map(({ name, stage }) => ({
    name,
    stage: stage === 'GA' ? '' : stage,
    enabled: gates.enabled(name),
  }));
}
