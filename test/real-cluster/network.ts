import { existsSync, writeFileSync } from 'node:fs';
import { run, runBatch } from '../cluster/lab/namespace.ts';
import { controlPlane, loadBalancers, nodeAddress, nodes, outsideClient, podRange } from './addresses.ts';

/** The switch that connects all machines, in the namespace of the control plane. */
const bridge = 'kpt0';

/** Prepares the network namespace of this process as that of the control plane. */
export function buildControlPlaneNetwork(): void {
  setSysctls(
    'net.ipv6.conf.default.accept_dad=0',
    'net.ipv4.ip_forward=1',
    'net.ipv6.conf.all.forwarding=1',
    // A load balancer spreads connections, not clients.
    'net.ipv4.fib_multipath_hash_policy=1',
  );
  runBatch(
    [],
    [
      'link set lo up',
      `link add ${bridge} type bridge`,
      `link set ${bridge} up`,
      `addr add ${controlPlane.v4}/24 dev ${bridge}`,
      `addr add ${controlPlane.v6}/64 dev ${bridge} nodad`,
      `addr add ${outsideClient}/32 dev lo`,
      `neigh add ${loadBalancers.nobody} lladdr 02:00:00:00:00:fe dev ${bridge} nud permanent`,
      `route add ${loadBalancers.network} via ${loadBalancers.nobody} src ${outsideClient}`,
    ],
  );
  // Kernels without bridge filtering lack these.
  for (const family of ['iptables', 'ip6tables']) {
    const setting = `/proc/sys/net/bridge/bridge-nf-call-${family}`;
    if (existsSync(setting)) writeFileSync(setting, '0');
  }
}

/** Connects a node, whose first process is given, and makes its routes. */
export function connectNode(node: number, pid: number): void {
  const device = `node${node}`;
  const own = nodeAddress(node);
  runBatch(
    [],
    [
      `link add ${device} type veth peer name eth0 netns ${pid}`,
      `link set ${device} master ${bridge} up`,
      ...podRoutes(node),
    ],
  );
  const others = nodes.filter((other) => other !== node);
  const lines = [
    'link set lo up',
    'link set eth0 up',
    `addr add ${own.v4}/24 dev eth0`,
    `addr add ${own.v6}/64 dev eth0 nodad`,
    `route add default via ${controlPlane.v4}`,
    `route add ::/0 via ${controlPlane.v6}`,
    ...others.flatMap(podRoutes),
  ];
  for (const line of lines) run('nsenter', '-t', String(pid), '-n', 'ip', ...line.split(' '));
}

/** Routes of another machine to the pods of a node. */
function podRoutes(node: number): string[] {
  const [address, pods] = [nodeAddress(node), podRange(node)];
  return [`route add ${pods.v4} via ${address.v4}`, `route add ${pods.v6} via ${address.v6}`];
}

function setSysctls(...settings: readonly string[]): void {
  run('sysctl', '-qw', ...settings);
}
