import { nodePortOf, podPort } from './objects.ts';
import type { Scene } from './scene.ts';

/** A service as upstream's layout programs it: cluster IP and node port over TCP, with two endpoints. */
interface UpstreamService {
  readonly clusterIP: string;
  readonly port: number;
  readonly nodePort: number;
  readonly nodeIP: string;
  readonly podCIDR: string;
  readonly endpoints: readonly [string, string];
  readonly endpointPort: number;
}

/** The service of a scene, for upstream's nftables layout. */
export function upstreamService(scene: Scene): UpstreamService {
  const { n } = scene.service();
  const { book } = scene;
  return {
    clusterIP: book.service(n).clusterIP,
    port: 80,
    nodePort: nodePortOf(n),
    nodeIP: book.node,
    podCIDR: book.podCIDR,
    endpoints: [book.hosts.A, book.hosts.B],
    endpointPort: podPort,
  };
}

/** The base chains that both programs have, with hook and priority. */
export const baseChains: readonly string[] = [
  'filter-prerouting-pre-dnat { type filter hook prerouting priority -110; }',
  'filter-output-pre-dnat { type filter hook output priority -110; }',
  'nat-prerouting { type nat hook prerouting priority -100; }',
  'nat-output { type nat hook output priority -100; }',
  'filter-input { type filter hook input priority 0; }',
  'filter-forward { type filter hook forward priority 0; }',
  'filter-output { type filter hook output priority 0; }',
  'nat-postrouting { type nat hook postrouting priority 100; }',
];

/** Named sets and maps that upstream adds, with their types. */
export const upstreamSets: readonly string[] = [
  'set ip kube-proxy cluster-ips { type ipv4_addr; }',
  'set ip kube-proxy nodeport-ips { type ipv4_addr; }',
  'set ip kube-proxy hairpin-connections { type ipv4_addr . ipv4_addr . inet_proto . inet_service; }',
  'map ip kube-proxy service-ips { type ipv4_addr . inet_proto . inet_service : verdict; }',
  'map ip kube-proxy service-nodeports { type inet_proto . inet_service : verdict; }',
  'map ip kube-proxy no-endpoint-services { type ipv4_addr . inet_proto . inet_service : verdict; }',
  'map ip kube-proxy no-endpoint-nodeports { type inet_proto . inet_service : verdict; }',
  'map ip kube-proxy firewall-ips { type ipv4_addr . inet_proto . inet_service : verdict; }',
];

/** Chains that upstream fills besides the base chains. */
export const upstreamChains: readonly string[] = [
  'services',
  'masquerading',
  'cluster-ips-check',
  'service-endpoints-check',
  'nodeport-endpoints-check',
  'firewall-check',
  'reject-chain',
];

/** A base chain that an earlier release of upstream made and newer ones do not remove. */
const forgottenChain = 'filter-prerouting { type filter hook prerouting priority -110; }';

/** A working table as upstream leaves it behind, as a script for nft. */
export function upstreamTable(service: UpstreamService): string {
  const { clusterIP, port, nodePort, nodeIP, podCIDR, endpoints, endpointPort } = service;
  const [first, second] = endpoints;
  const chain = 'service-ULMVA6XW-contract/service/tcp/tcp';
  const external = 'external-ULMVA6XW-contract/service/tcp/tcp';
  const choice = `numgen random mod 2 map { 0 : ${first} . ${endpointPort}, 1 : ${second} . ${endpointPort} }`;
  const rules: readonly [string, string][] = [
    ['nat-prerouting', 'jump services'],
    ['nat-output', 'jump services'],
    ['nat-postrouting', 'jump masquerading'],
    ['masquerading', 'mark & 0x4000 != 0 meta mark set mark & 0xffffbfff masquerade fully-random'],
    ['services', 'ip daddr . meta l4proto . th dport vmap @service-ips'],
    ['services', 'ip daddr @nodeport-ips meta l4proto . th dport vmap @service-nodeports'],
    [external, 'meta mark set mark | 0x4000'],
    [external, `goto ${chain}`],
    [chain, `ip daddr ${clusterIP} ip saddr != ${podCIDR} meta mark set mark | 0x4000`],
    [chain, `meta l4proto tcp dnat ip to ${choice}`],
    ['filter-forward', 'ct state new jump cluster-ips-check'],
    ['reject-chain', 'reject'],
    ['cluster-ips-check', 'ip daddr @cluster-ips reject'],
  ];
  return [
    'add table ip kube-proxy { comment "rules for kube-proxy" ; }',
    ...[...baseChains, forgottenChain].map((base) => `add chain ip kube-proxy ${base}`),
    ...[...upstreamChains, chain, external].map((name) => `add chain ip kube-proxy ${name}`),
    ...upstreamSets.map((set) => `add ${set}`),
    'add set ip kube-proxy affinity-ULMVA6XW-contract/service/tcp/tcp__10.0.0.1/80 { type ipv4_addr; flags dynamic,timeout; timeout 3h; }',
    ...rules.map(([name, rule]) => `add rule ip kube-proxy ${name} ${rule}`),
    `add element ip kube-proxy cluster-ips { ${clusterIP} }`,
    `add element ip kube-proxy nodeport-ips { ${nodeIP} }`,
    `add element ip kube-proxy service-ips { ${clusterIP} . tcp . ${port} : goto ${chain} }`,
    `add element ip kube-proxy service-nodeports { tcp . ${nodePort} : goto ${external} }`,
    '',
  ].join('\n');
}

/**
 * The first transaction of upstream when it takes a table over. It replaces its base chains, adds its sets and chains,
 * and adds and deletes the objects of a feature gate that is off.
 */
export function upstreamStart(): string {
  const names = baseChains.map((base) => base.split(' ')[0] ?? '');
  return [
    'add table ip kube-proxy { comment "rules for kube-proxy" ; }',
    ...baseChains.map((base) => `add chain ip kube-proxy ${base}`),
    ...names.map((name) => `flush chain ip kube-proxy ${name}`),
    ...names.map((name) => `delete chain ip kube-proxy ${name}`),
    ...baseChains.map((base) => `add chain ip kube-proxy ${base}`),
    ...upstreamChains.map((name) => `add chain ip kube-proxy ${name}`),
    ...upstreamSets.map((set) => `add ${set}`),
    'add chain ip kube-proxy localhost-nodeport-reject-tcp',
    'delete chain ip kube-proxy localhost-nodeport-reject-tcp',
    'add counter ip kube-proxy localhost-nodeport-rejected-tcp',
    'delete counter ip kube-proxy localhost-nodeport-rejected-tcp',
    '',
  ].join('\n');
}
