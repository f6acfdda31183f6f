import { isLoopback, parseIP } from '../../model/ip.ts';
import { nodePortIPs } from '../../model/node-port-addresses.ts';
import { localnetComment } from '../kubelet-chains.ts';
import { forwardRules, masqueradeMarked } from '../rule-text.ts';
import type { IptablesSettings } from './settings.ts';
import type { Counters } from './tables.ts';

/** The chains that every sync knows, in the order in which they are declared. */
export const natChains = ['KUBE-SERVICES', 'KUBE-NODEPORTS', 'KUBE-POSTROUTING', 'KUBE-MARK-MASQ'] as const;

const alwaysInFilter = [
  'KUBE-SERVICES',
  'KUBE-EXTERNAL-SERVICES',
  'KUBE-FORWARD',
  'KUBE-NODEPORTS',
  'KUBE-PROXY-FIREWALL',
] as const;

/** KUBE-FIREWALL is shared with the kubelet: it is mentioned only when there is something to put into it. */
export function filterChains({ localhostNodePorts }: IptablesSettings): readonly string[] {
  return localhostNodePorts ? [...alwaysInFilter, 'KUBE-FIREWALL'] : alwaysInFilter;
}

export function natHead({ masqueradeBit }: IptablesSettings): readonly string[] {
  return masqueradeMarked(masqueradeBit);
}

/** With route_localnet on, keeps neighbours from reaching what listens on loopback only. */
export function filterHead({ localhostNodePorts }: IptablesSettings): readonly string[] {
  if (!localhostNodePorts) return [];
  return [
    `-A KUBE-FIREWALL -m comment --comment "${localnetComment}" -d 127.0.0.0/8 ! -s 127.0.0.0/8 -m conntrack ! --ctstate RELATED,ESTABLISHED,DNAT -j DROP`,
  ];
}

export function filterTail(settings: IptablesSettings, counters: Counters): readonly string[] {
  const counter = counters.invalidDropped ? ' -m nfacct --nfacct-name ct_state_invalid_dropped_pkts' : '';
  return [
    ...(settings.conntrackLiberal
      ? []
      : [`-A KUBE-FORWARD -m conntrack --ctstate INVALID${counter} -j DROP`]),
    ...forwardRules(settings.masqueradeBit),
  ];
}

const handOver =
  '-A KUBE-SERVICES -m comment --comment "kubernetes service nodeports; NOTE: this must be the last rule in this chain"';

/**
 * Hands what no service address matched over to KUBE-NODEPORTS. Interface addresses matter only where node ports are
 * served on some addresses, not all.
 */
export function natTail(
  settings: IptablesSettings,
  interfaceAddresses: readonly string[],
): readonly string[] {
  const { family, nodePortAddresses, localhostNodePorts } = settings;
  if (nodePortAddresses.matchAll) {
    const loopback = family === 'IPv6' ? ' ! -d ::1/128' : localhostNodePorts ? '' : ' ! -d 127.0.0.0/8';
    return [`${handOver} -m addrtype --dst-type LOCAL${loopback} -j KUBE-NODEPORTS`];
  }
  return nodePortIPs(nodePortAddresses, interfaceAddresses)
    .filter((ip) => localhostNodePorts || !isLoopbackText(ip))
    .sort()
    .map((ip) => `${handOver} -d ${ip} -j KUBE-NODEPORTS`);
}

/** Addresses that node ports are asked for on and cannot be served on. */
export function unservedLoopback(
  settings: IptablesSettings,
  interfaceAddresses: readonly string[],
): string[] {
  const { nodePortAddresses, localhostNodePorts } = settings;
  if (nodePortAddresses.matchAll || localhostNodePorts) return [];
  return nodePortIPs(nodePortAddresses, interfaceAddresses).filter(isLoopbackText).sort();
}

function isLoopbackText(text: string): boolean {
  const ip = parseIP(text);
  return ip !== undefined && isLoopback(ip);
}
