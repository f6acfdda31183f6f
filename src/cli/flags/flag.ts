import { defaultConfig, HEALTHZ_PORT, METRICS_PORT } from '../../config/defaults.ts';
import type { ConfigDraft } from '../../config/types.ts';
import { SECOND } from '../../lib/duration.ts';
import type { FastPathScope } from '../../model/fast-path.ts';
import type { ResetDeparted } from '../../model/own-annotations.ts';
import { defineFlag, type Flag } from '../flag-set.ts';
import type { FlagType } from '../flag-types.ts';
import { noVersionRequest, type VersionRequest } from '../version.ts';

/**
 * The values of the flags. A flag for a configuration field writes to `draft`. Flags that apply only in some modes, or
 * also with a configuration file, have their own field until the configuration is complete.
 */
export interface FlagValues {
  /** The configuration from the flags; not used with --config. */
  draft: ConfigDraft;
  configPath: string;
  writeConfigTo: string;
  cleanup: boolean;
  initOnly: boolean;
  dryRun: boolean;
  output: 'text' | 'json';
  master: string;
  manifests: string;
  hostnameOverride: string;
  healthzPort: number;
  metricsPort: number;
  inspectionFrom: readonly string[];
  serviceMetrics: readonly string[];
  serviceMetricsMax: number;
  resetDeparted: ResetDeparted;
  fastPath: FastPathScope;
  fastPathAfter: number;
  clusterCIDR: string;
  iptablesSyncPeriod: bigint;
  iptablesMinSyncPeriod: bigint;
  ipvsSyncPeriod: bigint;
  ipvsMinSyncPeriod: bigint;
  version: VersionRequest;
  help: boolean;
}

const SERVICE_METRICS_MAX = 1000;
/** Packets: more than a short exchange has, which would gain nothing. */
const FAST_PATH_AFTER = 20;

/** The values of a start without flags. */
export function defaultValues(): FlagValues {
  return {
    draft: defaultConfig(),
    configPath: '',
    writeConfigTo: '',
    cleanup: false,
    initOnly: false,
    dryRun: false,
    output: 'text',
    master: '',
    manifests: '',
    hostnameOverride: '',
    healthzPort: HEALTHZ_PORT,
    metricsPort: METRICS_PORT,
    inspectionFrom: [],
    serviceMetrics: [],
    serviceMetricsMax: SERVICE_METRICS_MAX,
    resetDeparted: 'off',
    fastPath: 'off',
    fastPathAfter: FAST_PATH_AFTER,
    clusterCIDR: '',
    iptablesSyncPeriod: 30n * SECOND,
    iptablesMinSyncPeriod: SECOND,
    ipvsSyncPeriod: 30n * SECOND,
    ipvsMinSyncPeriod: SECOND,
    version: noVersionRequest,
    help: false,
  };
}

const defaults = defaultValues();

/** A flag of kube-proxy. */
export type ProxyFlag = Flag<FlagValues>;

/** Properties that only a few flags have. */
interface Extras<T> {
  readonly shorthand?: string;
  readonly deprecated?: string;
  /** For a field that is null by default. */
  readonly default?: T;
}

/** Where the value of a flag is kept. */
interface Place<T> {
  read(values: FlagValues): T | null;
  write(values: FlagValues, value: T): void;
}

/** Defines a flag; its default is the value that `place` has in a start without flags. */
export function flag<T>(
  name: string,
  type: FlagType<T>,
  place: Place<T>,
  help: string,
  extras: Extras<T> = {},
): ProxyFlag {
  const initial = place.read(defaults) ?? extras.default;
  if (initial === undefined) throw new Error(`flag --${name} has no default`);
  return defineFlag({ name, type, help, ...extras, default: initial, write: place.write });
}

/** A field of the section that `of` returns. */
export function field<Section extends object, Key extends keyof Section>(
  of: (values: FlagValues) => Section,
  key: Key,
): Place<NonNullable<Section[Key]>> {
  return {
    read: (values) => of(values)[key] ?? null,
    write: (values, value) => {
      of(values)[key] = value;
    },
  };
}
