import type { Jump, Table } from './kernel.ts';

/** Our chains in the order in which they are made and flushed. */
export const chains: Readonly<Record<Table, readonly string[]>> = {
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

export const tables: readonly Table[] = ['nat', 'filter'];

const portals = 'kubernetes service portals';
const firewall = 'kube-proxy firewall rules';
const accessFilter = 'kubernetes ipvs access filter';

/** Each is prepended: what comes later here runs earlier. */
export const jumps: readonly Jump[] = [
  { table: 'nat', from: 'OUTPUT', to: 'KUBE-SERVICES', comment: portals },
  { table: 'nat', from: 'PREROUTING', to: 'KUBE-SERVICES', comment: portals },
  { table: 'nat', from: 'POSTROUTING', to: 'KUBE-POSTROUTING', comment: 'kubernetes postrouting rules' },
  { table: 'filter', from: 'FORWARD', to: 'KUBE-FORWARD', comment: 'kubernetes forwarding rules' },
  { table: 'filter', from: 'INPUT', to: 'KUBE-NODE-PORT', comment: 'kubernetes health check rules' },
  { table: 'filter', from: 'INPUT', to: 'KUBE-PROXY-FIREWALL', comment: firewall },
  { table: 'filter', from: 'FORWARD', to: 'KUBE-PROXY-FIREWALL', comment: firewall },
  { table: 'filter', from: 'INPUT', to: 'KUBE-IPVS-FILTER', comment: accessFilter },
  { table: 'filter', from: 'OUTPUT', to: 'KUBE-IPVS-OUT-FILTER', comment: accessFilter },
];
