import type { ProxyMode } from '../model/proxy-mode.ts';

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

/**
 * A configuration before validation, in the layout of the program (upstream's internal one): one pair of sync periods
 * and one masqueradeAll for any mode. `mode` and `detectLocalMode` are strings because validation checks them, not
 * decoding.
 */
export interface ConfigDraft {
  featureGates: Record<string, boolean>;
  clientConnection: {
    kubeconfig: string;
    acceptContentTypes: string;
    contentType: string;
    qps: number;
    burst: number;
  };
  logging: LoggingConfig;
  hostnameOverride: string;
  bindAddress: string;
  healthzBindAddress: string;
  metricsBindAddress: string;
  bindAddressHardFail: boolean;
  enableProfiling: boolean;
  showHiddenMetricsForVersion: string;
  mode: string;
  iptables: { masqueradeBit: number | null; localhostNodePorts: boolean | null };
  ipvs: {
    scheduler: string;
    excludeCIDRs: string[] | null;
    strictARP: boolean;
    tcpTimeout: Duration;
    tcpFinTimeout: Duration;
    udpTimeout: Duration;
  };
  nftables: { masqueradeBit: number | null };
  winkernel: {
    networkName: string;
    sourceVip: string;
    enableDSR: boolean;
    rootHnsEndpointName: string;
    forwardHealthCheckVip: boolean;
  };
  detectLocalMode: string;
  detectLocal: { bridgeInterface: string; interfaceNamePrefix: string; clusterCIDRs: string[] };
  nodePortAddresses: string[] | null;
  syncPeriod: Duration;
  minSyncPeriod: Duration;
  configSyncPeriod: Duration;
  linux: {
    masqueradeAll: boolean;
    oomScoreAdj: number | null;
    conntrack: {
      maxPerCore: number | null;
      min: number | null;
      tcpEstablishedTimeout: Duration | null;
      tcpCloseWaitTimeout: Duration | null;
      tcpBeLiberal: boolean;
      udpTimeout: Duration;
      udpStreamTimeout: Duration;
    };
  };
  windowsRunAsService: boolean;
  /** Settings that only userspace mode has, as written; absent when there are none. */
  userspace?: { portRange?: string; udpIdleTimeout?: string };
}

export interface LoggingConfig {
  format: string;
  flushFrequency: Nanoseconds;
  verbosity: number;
  vmodule: { filePattern: string; verbosity: number }[];
  options: {
    text: { splitStream: boolean; infoBufferSize: Quantity };
    json: { splitStream: boolean; infoBufferSize: Quantity };
  };
}
