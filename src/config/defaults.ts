import { HOUR, MINUTE, SECOND } from '../lib/duration.ts';
import { joinHostPort, parseIP } from '../model/ip.ts';
import { toInternal } from './convert.ts';
import { zeroOf } from './schema.ts';
import type { ConfigDraft } from './types.ts';
import { type V1Alpha1, v1alpha1 } from './v1alpha1.ts';

export const HEALTHZ_PORT = 10256;
export const METRICS_PORT = 10249;

/** The configuration of an empty file, without platform defaults. */
export function defaultConfig(): ConfigDraft {
  return toInternal(setDefaults(zeroOf(v1alpha1)));
}

/**
 * Fills in the defaults of a file. Zero counts as unset except for fields that can be null. So `minSyncPeriod: 0s`
 * becomes 1s in the iptables and nftables sections, but stays in the ipvs section, which has no default for it; and a
 * file cannot switch off the health server.
 */
export function setDefaults(external: V1Alpha1): V1Alpha1 {
  const { clientConnection, logging, iptables, ipvs, nftables } = external;
  const bindAddress = external.bindAddress || '0.0.0.0';
  return {
    ...external,
    clientConnection: {
      ...clientConnection,
      contentType: clientConnection.contentType || 'application/vnd.kubernetes.protobuf',
      qps: clientConnection.qps || 5,
      burst: clientConnection.burst || 10,
    },
    logging: {
      ...logging,
      format: logging.format || 'text',
      flushFrequency: logging.flushFrequency || 5n * SECOND,
    },
    ...defaultAddresses(external, bindAddress),
    iptables: {
      ...iptables,
      masqueradeBit: iptables.masqueradeBit ?? 14,
      localhostNodePorts: iptables.localhostNodePorts ?? true,
      syncPeriod: iptables.syncPeriod || 30n * SECOND,
      minSyncPeriod: iptables.minSyncPeriod || SECOND,
    },
    ipvs: { ...ipvs, syncPeriod: ipvs.syncPeriod || 30n * SECOND },
    nftables: {
      ...nftables,
      masqueradeBit: nftables.masqueradeBit ?? 14,
      syncPeriod: nftables.syncPeriod || 30n * SECOND,
      minSyncPeriod: nftables.minSyncPeriod || SECOND,
    },
    oomScoreAdj: external.oomScoreAdj ?? -999,
    conntrack: {
      ...external.conntrack,
      maxPerCore: external.conntrack.maxPerCore ?? 32 * 1024,
      min: external.conntrack.min ?? 128 * 1024,
      tcpEstablishedTimeout: external.conntrack.tcpEstablishedTimeout ?? 24n * HOUR,
      tcpCloseWaitTimeout: external.conntrack.tcpCloseWaitTimeout ?? HOUR,
    },
    configSyncPeriod: external.configSyncPeriod || 15n * MINUTE,
  };
}

function defaultAddresses(external: V1Alpha1, bindAddress: string) {
  const isIPv4 = parseIP(bindAddress)?.family === 'IPv4';
  const healthz = external.healthzBindAddress || (isIPv4 ? '0.0.0.0' : '::');
  const metrics = external.metricsBindAddress || (isIPv4 ? '127.0.0.1' : '::1');
  return {
    bindAddress,
    healthzBindAddress: withPort(healthz, HEALTHZ_PORT),
    metricsBindAddress: withPort(metrics, METRICS_PORT),
  };
}

/** Appends the port to a bare IP; returns other texts unchanged, for validation to check. */
export function withPort(address: string, port: number): string {
  return parseIP(address) ? joinHostPort(address, port) : address;
}

/** Applies the defaults for Linux; returns also whether the mode is a default. */
export function applyPlatformDefaults(config: ConfigDraft): { config: ConfigDraft; modeDefaulted: boolean } {
  const mode = config.mode || 'iptables';
  const isOpen = config.nodePortAddresses === null || config.nodePortAddresses.length === 0;
  return {
    config: {
      ...config,
      mode,
      detectLocalMode: config.detectLocalMode || 'ClusterCIDR',
      nodePortAddresses: mode === 'nftables' && isOpen ? ['primary'] : config.nodePortAddresses,
    },
    modeDefaulted: config.mode === '',
  };
}
