import { canonicalEntry } from '../../kernel/ipset/entry.ts';
import type { SetDefinition, SetType } from '../../kernel/ipset/objects.ts';
import type { Family } from '../../model/ip.ts';

interface SetFacts {
  readonly type: SetType;
  /** Goes into the iptables rules that look the set up, never into the set. */
  readonly comment: string;
}

/** Upstream's ipsets by their IPv4 names; all of them exist all the time. */
const sets = {
  'KUBE-LOOP-BACK': {
    type: 'hash:ip,port,ip',
    comment: 'Kubernetes endpoints dst ip:port, source ip for solving hairpin purpose',
  },
  'KUBE-CLUSTER-IP': {
    type: 'hash:ip,port',
    comment: 'Kubernetes service cluster ip + port for masquerade purpose',
  },
  'KUBE-EXTERNAL-IP': {
    type: 'hash:ip,port',
    comment: 'Kubernetes service external ip + port for masquerade and filter purpose',
  },
  'KUBE-EXTERNAL-IP-LOCAL': {
    type: 'hash:ip,port',
    comment: 'Kubernetes service external ip + port with externalTrafficPolicy=local',
  },
  'KUBE-LOAD-BALANCER': { type: 'hash:ip,port', comment: 'Kubernetes service lb portal' },
  'KUBE-LOAD-BALANCER-FW': {
    type: 'hash:ip,port',
    comment: 'Kubernetes service load balancer ip + port for load balancer with sourceRange',
  },
  'KUBE-LOAD-BALANCER-LOCAL': {
    type: 'hash:ip,port',
    comment: 'Kubernetes service load balancer ip + port with externalTrafficPolicy=local',
  },
  'KUBE-LOAD-BALANCER-SOURCE-IP': {
    type: 'hash:ip,port,ip',
    comment: 'Kubernetes service load balancer ip + port + source IP for packet filter purpose',
  },
  'KUBE-LOAD-BALANCER-SOURCE-CIDR': {
    type: 'hash:ip,port,net',
    comment: 'Kubernetes service load balancer ip + port + source cidr for packet filter purpose',
  },
  'KUBE-NODE-PORT-TCP': {
    type: 'bitmap:port',
    comment: 'Kubernetes nodeport TCP port for masquerade purpose',
  },
  'KUBE-NODE-PORT-LOCAL-TCP': {
    type: 'bitmap:port',
    comment: 'Kubernetes nodeport TCP port with externalTrafficPolicy=local',
  },
  'KUBE-NODE-PORT-UDP': {
    type: 'bitmap:port',
    comment: 'Kubernetes nodeport UDP port for masquerade purpose',
  },
  'KUBE-NODE-PORT-LOCAL-UDP': {
    type: 'bitmap:port',
    comment: 'Kubernetes nodeport UDP port with externalTrafficPolicy=local',
  },
  'KUBE-NODE-PORT-SCTP-HASH': {
    type: 'hash:ip,port',
    comment: "Kubernetes nodeport SCTP port for masquerade purpose with type 'hash ip:port'",
  },
  'KUBE-NODE-PORT-LOCAL-SCTP-HASH': {
    type: 'hash:ip,port',
    comment: "Kubernetes nodeport SCTP port with externalTrafficPolicy=local with type 'hash ip:port'",
  },
  'KUBE-HEALTH-CHECK-NODE-PORT': { type: 'bitmap:port', comment: 'Kubernetes health check node port' },
  'KUBE-IPVS-IPS': { type: 'hash:ip', comment: 'Addresses on the ipvs interface' },
} as const satisfies Readonly<Record<string, SetFacts>>;

/** A set by its IPv4 name, in either family. */
export type IpsetName = keyof typeof sets;

export const setNames = Object.keys(sets) as IpsetName[];

/** The set that mirrors the addresses of the device; no service port puts entries there itself. */
export const boundAddressSet = 'KUBE-IPVS-IPS' satisfies IpsetName;

/** The kernel's limit for set names is 31 characters. */
const maxNameLength = 31;

/** What the set is called in the kernel. */
export function kernelName(set: IpsetName, family: Family): string {
  return family === 'IPv4' ? set : set.replace('KUBE-', 'KUBE-6-').slice(0, maxNameLength);
}

export function setComment(set: IpsetName): string {
  return sets[set].comment;
}

/** How the set is made. */
export function setDefinition(set: IpsetName, family: Family): SetDefinition {
  const name = kernelName(set, family);
  const { type } = sets[set];
  if (type === 'bitmap:port') return { name, type, from: 0, to: 65_535 };
  return { name, type, family, hashSize: 1024, maxElements: 65_536 };
}

/** One spelling for each entry of a set; throws when it does not fit the set. */
export function canonicalSetEntry(set: IpsetName, entry: string): string {
  return canonicalEntry(entry, sets[set].type);
}
