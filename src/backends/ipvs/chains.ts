import { comment, type Jump, type JumpTable } from '../jumps.ts';

/** Our chains in the order in which they are made and flushed. */
export const chains: Readonly<Record<JumpTable, readonly string[]>> = {
  nat: ['KUBE-SERVICES', 'KUBE-POSTROUTING', 'KUBE-NODE-PORT', 'KUBE-LOAD-BALANCER', 'KUBE-MARK-MASQ'],
  filter: [
    'KUBE-FORWARD',
    'KUBE-NODE-PORT',
    'KUBE-PROXY-FIREWALL',
    'KUBE-SOURCE-RANGES-FIREWALL',
    'KUBE-IPVS-FILTER',
    'KUBE-IPVS-OUT-FILTER',
  ],
};

export const tables: readonly JumpTable[] = ['nat', 'filter'];

const portals = comment('kubernetes service portals');
const firewall = comment('kube-proxy firewall rules');
const accessFilter = comment('kubernetes ipvs access filter');

/** Each is prepended: what comes later here runs earlier. */
export const jumps: readonly Jump[] = [
  { table: 'nat', from: 'OUTPUT', to: 'KUBE-SERVICES', match: portals },
  { table: 'nat', from: 'PREROUTING', to: 'KUBE-SERVICES', match: portals },
  {
    table: 'nat',
    from: 'POSTROUTING',
    to: 'KUBE-POSTROUTING',
    match: comment('kubernetes postrouting rules'),
  },
  { table: 'filter', from: 'FORWARD', to: 'KUBE-FORWARD', match: comment('kubernetes forwarding rules') },
  { table: 'filter', from: 'INPUT', to: 'KUBE-NODE-PORT', match: comment('kubernetes health check rules') },
  { table: 'filter', from: 'INPUT', to: 'KUBE-PROXY-FIREWALL', match: firewall },
  { table: 'filter', from: 'FORWARD', to: 'KUBE-PROXY-FIREWALL', match: firewall },
  { table: 'filter', from: 'INPUT', to: 'KUBE-IPVS-FILTER', match: accessFilter },
  { table: 'filter', from: 'OUTPUT', to: 'KUBE-IPVS-OUT-FILTER', match: accessFilter },
];
