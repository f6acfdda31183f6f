import type { ProxyMode } from '../model/proxy-mode.ts';
import type { V1Alpha1 } from './v1alpha1.ts';

/** A duration in nanoseconds, as in Go. */
export type Duration = bigint;

/** A duration that is shown as written: a plain number of nanoseconds stays a number. */
export type Nanoseconds = Duration | number;

/** A Kubernetes resource quantity in its canonical text. */
export type Quantity = string;

/** The effective configuration, complete and validated. */
export interface ProxyConfig extends ConfigDraft {
  mode: ProxyMode;
}

type SyncPeriods = 'syncPeriod' | 'minSyncPeriod';

/** Fields of the file that are elsewhere, or of another type, in `ConfigDraft`. */
type Moved =
  | ('kind' | 'apiVersion' | 'portRange' | 'clusterCIDR' | 'oomScoreAdj' | 'conntrack')
  | ('featureGates' | 'logging' | 'iptables' | 'ipvs' | 'nftables' | 'detectLocal');

/**
 * A configuration before validation, in the layout of the program (upstream's internal one): the fields of the file
 * (v1alpha1.ts), but one pair of sync periods and one masqueradeAll for any mode. `mode` and `detectLocalMode` are
 * strings because validation checks them, not decoding.
 */
export interface ConfigDraft extends Omit<V1Alpha1, Moved> {
  featureGates: Record<string, boolean>;
  logging: LoggingConfig;
  iptables: Omit<V1Alpha1['iptables'], SyncPeriods | 'masqueradeAll'>;
  ipvs: Omit<V1Alpha1['ipvs'], SyncPeriods>;
  nftables: Omit<V1Alpha1['nftables'], SyncPeriods | 'masqueradeAll'>;
  detectLocal: V1Alpha1['detectLocal'] & { clusterCIDRs: string[] };
  syncPeriod: Duration;
  minSyncPeriod: Duration;
  linux: Pick<V1Alpha1, 'oomScoreAdj' | 'conntrack'> & { masqueradeAll: boolean };
  /** Settings that only userspace mode has, as written; absent when there are none. */
  userspace?: { portRange?: string; udpIdleTimeout?: string };
}

export type LoggingConfig = Omit<V1Alpha1['logging'], 'vmodule'> & {
  vmodule: NonNullable<V1Alpha1['logging']['vmodule']>;
};
