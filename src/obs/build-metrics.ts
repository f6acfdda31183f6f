import type { BuildInfo } from '../lib/build-info.ts';
import type { Descriptor } from './family.ts';
import type { Registry } from './registry.ts';

export interface FeatureState {
  readonly name: string;
  /** `ALPHA`, `BETA`, `DEPRECATED`, or empty for GA. */
  readonly stage: string;
  readonly enabled: boolean;
}

/** Declares kubernetes_build_info, kubeproxy_ts_build_info, kubernetes_feature_enabled and the metrics about metrics. */
export function registerBuildMetrics(
  registry: Registry,
  build: BuildInfo,
  features: readonly FeatureState[],
): void {
  const labels = {
    major: build.major,
    minor: build.minor,
    git_version: build.gitVersion,
    git_commit: build.gitCommit,
    git_tree_state: build.gitTreeState,
    build_date: build.buildDate,
    go_version: build.goVersion,
    compiler: build.compiler,
    platform: build.platform,
  };
  registry
    .gauge({
      name: 'kubernetes_build_info',
      help: 'Always 1; the labels tell the version that runs',
      labels: Object.keys(labels),
      stability: 'ALPHA',
    })
    .set(1, labels);
  const own = { version: build.productVersion, commit: build.gitCommit, tree_state: build.gitTreeState };
  registry
    .gauge({
      name: 'kubeproxy_ts_build_info',
      help: 'Always 1; the labels tell the version and the commit of kube-proxy-ts',
      labels: Object.keys(own),
      stability: 'ALPHA',
    })
    .set(1, own);
  const feature = registry.gauge({
    name: 'kubernetes_feature_enabled',
    help: 'Whether a feature gate is on',
    labels: ['name', 'stage'],
    stability: 'BETA',
  });
  for (const { name, stage, enabled } of features) feature.set(enabled ? 1 : 0, { name, stage });
  registerBookkeeping(registry);
}

function registerBookkeeping(registry: Registry): void {
  registry.counter({ name: 'disabled_metrics_total', help: 'Metrics switched off', stability: 'BETA' });
  registry.counter({ name: 'hidden_metrics_total', help: 'Metrics hidden as deprecated', stability: 'BETA' });
  const descriptor = {
    name: 'registered_metrics_total',
    help: '[BETA] Metrics declared, by stability',
    type: 'counter',
  } as const satisfies Descriptor;
  registry.register({
    families: [descriptor],
    collect: () => {
      const levels = [...registry.stabilities()].sort(([a], [b]) => (a < b ? -1 : 1));
      const series = levels.map(([stability, value]) => ({
        labels: [['deprecated_version', ''] as const, ['stability_level', stability] as const],
        value,
      }));
      return [{ ...descriptor, series }];
    },
  });
}
