import type { ProxyMode } from '../model/proxy-mode.ts';

/** Nanoseconds, as Go counts durations. */
export type Duration = bigint;

/** A duration the way the file says it: a plain number of nanoseconds stays one, so that it is shown as one. */
export type Nanoseconds = Duration | number;

/** Kubernetes resource quantity, kept in the canonical text it is printed in. */
export type Quantity = string;

/** The effective configuration, complete and validated. */
export interface ProxyConfig extends ConfigDraft {
  mode: ProxyMode;
}

/**
 * A configuration that is not validated yet, in the layout the program works with (upstream's internal one): one
 * pair of sync periods and one masqueradeAll, whatever the mode. `mode` and `detectLocalMode` are plain strings
 * because validation, not decoding, judges them.
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
  /** Settings of userspace mode that other modes have no use for, as they were written; absent when none is. */
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
