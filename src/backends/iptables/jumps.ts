import { comment, type Jump, type JumpStructure } from '../jumps.ts';
import { sharedChain } from '../kubelet-chains.ts';

const externalPortals = 'kubernetes externally-visible service portals';
const portals = 'kubernetes service portals';
const firewall = 'kubernetes load balancer firewall';

/** In the order in which they are made: each goes in front of those before it. */
export const jumps: readonly Jump[] = [
  filterNew('INPUT', externalPortals, 'KUBE-EXTERNAL-SERVICES'),
  filterNew('FORWARD', externalPortals, 'KUBE-EXTERNAL-SERVICES'),
  filterAll('INPUT', 'kubernetes health check service ports', 'KUBE-NODEPORTS'),
  filterNew('FORWARD', portals, 'KUBE-SERVICES'),
  filterNew('OUTPUT', portals, 'KUBE-SERVICES'),
  filterAll('FORWARD', 'kubernetes forwarding rules', 'KUBE-FORWARD'),
  filterNew('INPUT', firewall, 'KUBE-PROXY-FIREWALL'),
  filterNew('OUTPUT', firewall, 'KUBE-PROXY-FIREWALL'),
  filterNew('FORWARD', firewall, 'KUBE-PROXY-FIREWALL'),
  nat('OUTPUT', portals, 'KUBE-SERVICES'),
  nat('PREROUTING', portals, 'KUBE-SERVICES'),
  nat('POSTROUTING', 'kubernetes postrouting rules', 'KUBE-POSTROUTING'),
  { table: 'filter', from: 'INPUT', to: sharedChain, match: [] },
  { table: 'filter', from: 'OUTPUT', to: sharedChain, match: [] },
];

export const jumpStructure: JumpStructure = { jumps, sharedChain };

function filterNew(from: string, text: string, to: string): Jump {
  const match = ['-m', 'conntrack', '--ctstate', 'NEW', ...comment(text)];
  return { table: 'filter', from, to, match };
}

function filterAll(from: string, text: string, to: string): Jump {
  return { table: 'filter', from, to, match: comment(text) };
}

function nat(from: string, text: string, to: string): Jump {
  return { table: 'nat', from, to, match: comment(text) };
}
