import { writeFileSync } from 'node:fs';
import { Host } from './host.ts';
import { run, runBatch } from './namespace.ts';

/** A host besides the node: a pod on it, a pod elsewhere, a client outside. */
export interface HostOptions {
  /** The name with which its servers answer. */
  readonly name: string;
  /** All addresses it has, of either family. */
  readonly addresses: readonly string[];
  /** Name of the node's end of the cable; derived from the host's name when absent. */
  readonly device?: string;
}

export interface LabOptions {
  /** Addresses of the node besides loopback. */
  readonly nodeAddresses: readonly string[];
  readonly hosts: readonly HostOptions[];
  /** The host of the node's default route. It also gets packets to service addresses that the node leaves alone. */
  readonly defaultRoute: string;
}

/** The node's address on every cable: the default gateway of the hosts. */
const gateways = { v4: '169.254.1.1', v6: 'fe80::1' };

/**
 * A node and hosts cabled to it, each in a namespace. The calling process is in the node's namespace (see
 * enterNamespace), so that a backend can be driven directly and a node process is simply this process. The node
 * routes between all of them.
 */
export class Lab {
  readonly #hosts: ReadonlyMap<string, Host>;
  readonly #namespaces: readonly string[];

  /** `node` is the name of the namespace that this process is in. */
  static build(node: string, options: LabOptions): Lab {
    prepareNode(options.nodeAddresses);
    const hosts = options.hosts.map((host, i) => {
      const namespace = `${node}-${host.name}`;
      const device = host.device ?? `veth${i}`;
      connectHost(namespace, host, device, options.nodeAddresses);
      if (host.name === options.defaultRoute) routeEverything(host, device);
      return new Host(host.name, namespace);
    });
    return new Lab(hosts);
  }

  private constructor(hosts: readonly Host[]) {
    this.#hosts = new Map(hosts.map((host) => [host.name, host]));
    this.#namespaces = hosts.map((host) => host.namespace);
  }

  host(name: string): Host {
    const host = this.#hosts.get(name);
    if (!host) throw new Error(`no host ${name} in this lab`);
    return host;
  }

  close(): void {
    for (const host of this.#hosts.values()) host.close();
    for (const namespace of this.#namespaces) run('ip', 'netns', 'delete', namespace);
  }
}

function prepareNode(addresses: readonly string[]): void {
  setSysctl('net/ipv4/ip_forward', '1');
  setSysctl('net/ipv6/conf/all/forwarding', '1');
  setSysctl('net/ipv4/conf/all/rp_filter', '0');
  // A client may be the next hop to a service address. Redirects would use up the ICMP messages that it may get, of
  // which one rejects its connection.
  for (const devices of ['all', 'default']) setSysctl(`net/ipv4/conf/${devices}/send_redirects`, '0');
  runBatch(
    [],
    addresses.map((address) => `addr add ${address}/${bits(address)} dev lo ${usableAtOnce(address)}`),
  );
}

function connectHost(
  namespace: string,
  host: HostOptions,
  device: string,
  nodeAddresses: readonly string[],
): void {
  run('ip', 'netns', 'add', namespace);
  runBatch(
    [],
    [
      `link add ${device} type veth peer name eth0 netns ${namespace}`,
      // Link scope keeps the kernel from choosing it as the source of masqueraded packets.
      `addr add ${gateways.v4}/32 dev ${device} scope link`,
      `addr add ${gateways.v6}/64 dev ${device} nodad`,
      `link set ${device} up`,
    ],
  );
  runBatch(
    ['-n', namespace],
    [
      'link set lo up',
      'link set eth0 up',
      ...host.addresses.map(
        (address) => `addr add ${address}/${bits(address)} dev eth0 ${usableAtOnce(address)}`,
      ),
      `route add default via ${gateways.v4} dev eth0 onlink`,
      `route add ::/0 via ${gateways.v6} dev eth0`,
    ],
  );
  runBatch(
    [],
    host.addresses.map((address) => {
      // Packets of the node itself have one of its own addresses, not the address of the cable.
      const source = nodeAddresses.find((own) => bits(own) === bits(address));
      return `route add ${address}/${bits(address)} dev ${device} ${source ? `src ${source}` : ''}`;
    }),
  );
}

function routeEverything({ addresses }: HostOptions, device: string): void {
  for (const [family, gateway] of [
    ['-4', addresses.find((address) => !address.includes(':'))],
    ['-6', addresses.find((address) => address.includes(':'))],
  ] as const) {
    if (gateway) run('ip', family, 'route', 'add', 'default', 'via', gateway, 'dev', device, 'onlink');
  }
}

/** Without `nodad`, an IPv6 address is unusable, also as a source, until duplicate address detection ends. */
function usableAtOnce(address: string): string {
  return address.includes(':') ? 'nodad' : '';
}

function bits(address: string): number {
  return address.includes(':') ? 128 : 32;
}

function setSysctl(path: string, value: string): void {
  writeFileSync(`/proc/sys/${path}`, value);
}
