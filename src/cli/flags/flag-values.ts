import type { ConfigDraft } from '../../config/types.ts';
import type { VersionRequest } from '../version.ts';

/**
 * What the flags write to. Flags that mirror a configuration field write to `draft`; the few that take effect only
 * in certain modes, or beside a configuration file, are kept apart until the configuration is complete.
 */
export interface FlagValues {
  /** The configuration that the flags describe; unused when a configuration file is named. */
  draft: ConfigDraft;
  configPath: string;
  writeConfigTo: string;
  cleanup: boolean;
  initOnly: boolean;
  dryRun: boolean;
  master: string;
  manifests: string;
  hostnameOverride: string;
  healthzPort: number;
  metricsPort: number;
  inspectionFrom: readonly string[];
  clusterCIDR: string;
  iptablesSyncPeriod: bigint;
  iptablesMinSyncPeriod: bigint;
  ipvsSyncPeriod: bigint;
  ipvsMinSyncPeriod: bigint;
  version: VersionRequest;
  help: boolean;
}
