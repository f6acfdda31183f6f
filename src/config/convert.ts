import { zeroOf } from './schema.ts';
import type { ConfigDraft } from './types.ts';
import { API_VERSION, KIND, type V1Alpha1, v1alpha1 } from './v1alpha1.ts';

/** The prefix of the sync period flags that apply to a mode. */
export function periodFlagsOf(mode: string): 'iptables' | 'ipvs' {
  return mode === 'ipvs' ? mode : 'iptables';
}

/** The section of the file that holds the sync periods of a mode. */
function sectionOf(mode: string): 'iptables' | 'ipvs' | 'nftables' {
  return mode === 'ipvs' || mode === 'nftables' ? mode : 'iptables';
}

/** Converts from the layout of the file to the layout of the program. */
export function toInternal(external: V1Alpha1): ConfigDraft {
  const { kind, apiVersion, portRange, clusterCIDR, conntrack, oomScoreAdj, ...same } = external;
  const { syncPeriod, minSyncPeriod, ...ipvs } = external.ipvs;
  const { iptables, nftables, logging, detectLocal } = external;
  const section = external[sectionOf(external.mode)];
  return {
    ...same,
    featureGates: external.featureGates ?? {},
    logging: { ...logging, vmodule: logging.vmodule ?? [] },
    iptables: { masqueradeBit: iptables.masqueradeBit, localhostNodePorts: iptables.localhostNodePorts },
    ipvs,
    nftables: { masqueradeBit: nftables.masqueradeBit },
    detectLocal: { ...detectLocal, clusterCIDRs: clusterCIDR === '' ? [] : clusterCIDR.split(',') },
    syncPeriod: section.syncPeriod,
    minSyncPeriod: section.minSyncPeriod,
    linux: {
      masqueradeAll: (external.mode === 'nftables' ? nftables : iptables).masqueradeAll,
      oomScoreAdj,
      conntrack,
    },
    ...(external.mode === 'userspace' && portRange !== '' && { userspace: { portRange } }),
  };
}

/** Converts back to the layout of the file. Settings of other modes stay zero. */
export function toExternal(config: ConfigDraft): V1Alpha1 {
  const { linux, syncPeriod, minSyncPeriod, detectLocal, iptables, ipvs, nftables, userspace, ...same } =
    config;
  const { clusterCIDRs, ...detectLocalFields } = detectLocal;
  const external: V1Alpha1 = {
    ...zeroOf(v1alpha1),
    ...same,
    kind: KIND,
    apiVersion: API_VERSION,
    iptables: { ...zeroOf(v1alpha1.fields.iptables.type), ...iptables },
    ipvs: { ...zeroOf(v1alpha1.fields.ipvs.type), ...ipvs },
    nftables: { ...zeroOf(v1alpha1.fields.nftables.type), ...nftables },
    detectLocal: detectLocalFields,
    clusterCIDR: clusterCIDRs.join(','),
    oomScoreAdj: linux.oomScoreAdj,
    conntrack: linux.conntrack,
  };
  if (config.mode === 'userspace') external.portRange = userspace?.portRange ?? '';
  Object.assign(external[sectionOf(config.mode)], { syncPeriod, minSyncPeriod });
  external[config.mode === 'nftables' ? 'nftables' : 'iptables'].masqueradeAll = linux.masqueradeAll;
  return external;
}
