import type { IptablesSettings } from '../../src/backends/iptables/settings.ts';
import { type Family, familyOf } from '../../src/model/ip.ts';
import { localDetectors } from '../../src/model/local-detector.ts';
import { expandNodePortAddresses, nodePortAddresses } from '../../src/model/node-port-addresses.ts';
import type { RecordedCluster } from '../plan/recorded-cluster.ts';

/** Upstream's configuration in the recording. */
interface RecordedConfig {
  readonly detectLocalMode: string;
  readonly clusterCIDR: string;
  readonly detectLocal?: { readonly bridgeInterface?: string; readonly interfaceNamePrefix?: string };
  readonly nodePortAddresses?: readonly string[];
  readonly iptables?: {
    readonly masqueradeBit: number;
    readonly masqueradeAll: boolean;
    readonly localhostNodePorts: boolean;
  };
}

interface RecordedNode {
  readonly spec: { readonly podCIDRs: readonly string[] };
  readonly status: { readonly addresses: readonly { readonly type: string; readonly address: string }[] };
}

export interface RecordedIptablesCluster extends RecordedCluster {
  readonly config: RecordedConfig;
  readonly node: RecordedCluster['node'] & RecordedNode;
}

/** The settings with which upstream wrote the recorded rules of one family. */
export function recordedSettings(
  { config, node }: RecordedIptablesCluster,
  family: Family,
): IptablesSettings {
  const nodeIPs = { IPv4: nodeIP(node, 'IPv4'), IPv6: nodeIP(node, 'IPv6') };
  const entries = expandNodePortAddresses(config.nodePortAddresses ?? [], nodeIPs);
  const addresses = nodePortAddresses(family, entries);
  const { detectors } = localDetectors({
    mode: config.detectLocalMode,
    clusterCIDRs: config.clusterCIDR.split(','),
    podCIDRs: node.spec.podCIDRs,
    bridgeInterface: config.detectLocal?.bridgeInterface ?? '',
    interfaceNamePrefix: config.detectLocal?.interfaceNamePrefix ?? '',
    primary: 'IPv4',
  });
  return {
    family,
    masqueradeBit: config.iptables?.masqueradeBit ?? 14,
    masqueradeAll: config.iptables?.masqueradeAll ?? false,
    localDetector: detectors[family],
    nodePortAddresses: addresses,
    nodeIP: nodeIPs[family],
    localhostNodePorts: (config.iptables?.localhostNodePorts ?? true) && addresses.containsIPv4Loopback,
    conntrackLiberal: false,
    syncPeriod: 30_000,
  };
}

/** Addresses of the node that upstream ran on. */
export function recordedAddresses({ node }: RecordedIptablesCluster): string[] {
  return ['127.0.0.1', '::1', nodeIP(node, 'IPv4'), nodeIP(node, 'IPv6')];
}

function nodeIP({ status }: RecordedNode, family: Family): string {
  return status.addresses.find(({ address }) => familyOf(address) === family)?.address ?? '';
}
