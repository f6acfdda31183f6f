import { existsSync, writeFileSync } from 'node:fs';
import { bitsOf } from '../../src/model/ip.ts';
import { Host } from '../cluster/lab/host.ts';
import { type HostOptions, Lab } from '../cluster/lab/lab.ts';
import { run, runBatch } from '../cluster/lab/namespace.ts';
import { sctpUnavailable } from '../cluster/lab/sctp.ts';
import { type AddressBook, addressBooks, type HostName } from './address-book.ts';
import { hostPort, podPort } from './objects.ts';
import { Turnstile } from './turnstile.ts';

const books: readonly AddressBook[] = Object.values(addressBooks);

/** Prefix of the devices of this node's pods; `podDevice` is that of the pod that is only a client. */
export const podDevicePrefix = 'podveth';
export const podDevice = `${podDevicePrefix}0`;

const clientDevice = 'clients0';

const devices: Partial<Record<HostName, string>> = {
  outside: clientDevice,
  pod: podDevice,
  A: `${podDevicePrefix}1`,
  C: `${podDevicePrefix}2`,
};

/** Ports on which the rest of the world answers packets that the node leaves alone. */
export const worldPorts = [80, 81];

/**
 * The node n1, which is the namespace of this process. Its pods, some pods of another node and the rest of the world
 * are cabled to it. Packets for which n1 has no other route go to the world, which answers them.
 */
export class Landscape {
  /** For questions that will be answered: more at a time would overflow the buffers of the servers. */
  readonly turnstile = new Turnstile(48);
  readonly #lab: Lab;
  readonly #node: Host;

  static async build(namespace: string): Promise<Landscape> {
    const lab = Lab.build(namespace, {
      nodeAddresses: books.flatMap(({ node, nodeSecond }) => [node, nodeSecond]),
      hosts: (['pod', 'A', 'B', 'C', 'D', 'remote', 'outside', 'world'] as const).map(hostOptions),
      defaultRoute: 'world',
    });
    const landscape = new Landscape(lab, new Host('node', namespace));
    try {
      await landscape.#serve();
    } catch (error) {
      landscape.close();
      throw error;
    }
    return landscape;
  }

  private constructor(lab: Lab, node: Host) {
    this.#lab = lab;
    this.#node = node;
  }

  /** `node` is a process on the node itself. */
  host(name: HostName | 'node'): Host {
    return name === 'node' ? this.#node : this.#lab.host(name);
  }

  /**
   * Lets the pods `remote` and `D`, which are on the same other node, reach each other without n1, as on a real node.
   * Returns a function that ends that.
   */
  connectNeighbours(): () => void {
    const { remote, D } = { remote: this.host('remote').namespace, D: this.host('D').namespace };
    runBatch(['-n', remote], [`link add near0 type veth peer name near0 netns ${D}`]);
    for (const [namespace, own, neighbour] of [
      [remote, 'remote', 'D'],
      [D, 'D', 'remote'],
    ] as const) {
      const routes = books.flatMap(({ hosts, family }) => [
        // In IPv6 a host answers for an address only on the link that has it.
        `addr add ${hosts[own]}/${bitsOf(family)} dev near0 ${family === 'IPv6' ? 'nodad' : ''}`,
        `route add ${hosts[neighbour]}/${bitsOf(family)} dev near0 src ${hosts[own]}`,
      ]);
      runBatch(['-n', namespace], ['link set near0 up', ...routes]);
    }
    return () => run('ip', '-n', remote, 'link', 'del', 'near0');
  }

  close(): void {
    this.#node.close();
    this.#lab.close();
  }

  async #serve(): Promise<void> {
    const world = this.host('world');
    liftRejectionLimits(world);
    forgetClosedConnections();
    preferFirstAddresses();
    ownNetworks(
      world,
      books.flatMap(({ worldNetworks }) => worldNetworks),
    );
    this.#bringClients();
    const serving: Promise<void>[] = [];
    for (const transport of ['tcp', 'udp'] as const) {
      for (const name of ['A', 'B', 'C', 'D'] as const)
        serving.push(this.host(name).serve(podPort, transport));
    }
    serving.push(this.#node.serve(hostPort, 'tcp'));
    // An answer to a datagram comes from the right address only if the socket is bound to that address.
    for (const { node } of books) serving.push(this.#node.serve(hostPort, 'udp', node));
    for (const port of worldPorts) {
      serving.push(world.serve(port, 'tcp'));
      for (const { unallocated } of books) serving.push(world.serve(port, 'udp', unallocated));
    }
    if (sctpUnavailable() === undefined) serving.push(...this.#serveSCTP());
    await Promise.all(serving);
  }

  #serveSCTP(): Promise<void>[] {
    return books.flatMap(({ hosts, node }) => [
      ...(['A', 'B', 'C', 'D'] as const).map((name) => this.host(name).serve(podPort, 'sctp', hosts[name])),
      this.#node.serve(hostPort, 'sctp', node),
    ]);
  }

  /** Clients are many addresses of one host. */
  #bringClients(): void {
    for (const { hosts, clientNetworks } of books) {
      ownNetworks(this.host('outside'), clientNetworks);
      runBatch(
        [],
        clientNetworks.map(
          (network) => `route add ${network} via ${hosts.outside} dev ${clientDevice} onlink`,
        ),
      );
    }
  }
}

/** Removes the kernel's limit of ICMP errors per second: stories that run at the same time cause more. */
const rejectionLimits = {
  '/proc/sys/net/ipv4/icmp_ratemask': '0',
  '/proc/sys/net/ipv6/icmp/ratelimit': '0',
  '/proc/sys/net/ipv6/icmp/ratemask': '255',
};

function liftRejectionLimits(world: Host): void {
  for (const [file, value] of Object.entries(rejectionLimits)) {
    writeFileSync(file, value);
    run('ip', 'netns', 'exec', world.namespace, 'sh', '-c', `echo ${value} > ${file}`);
  }
}

/**
 * Lets conntrack forget closed connections early. Stories make tens of thousands of connections within the two minutes
 * for which it keeps a closed one. On a machine with little memory its table would be full, and it would drop packets.
 */
function forgetClosedConnections(): void {
  const file = '/proc/sys/net/netfilter/nf_conntrack_tcp_timeout_time_wait';
  if (existsSync(file)) writeFileSync(file, '10');
}

/** Makes masqueraded packets always have the node's first address: the kernel must not choose the others. */
function preferFirstAddresses(): void {
  const { nodeSecond } = addressBooks.IPv6;
  run('ip', 'addr', 'change', `${nodeSecond}/128`, 'dev', 'lo', 'preferred_lft', '0');
}

/** Makes a host accept all addresses of these networks as its own. */
function ownNetworks({ namespace }: Host, networks: readonly string[]): void {
  runBatch(
    ['-n', namespace],
    networks.map((network) => `route add local ${network} dev lo`),
  );
  // In IPv6 the route alone does not let a socket bind to these addresses.
  const allow = 'echo 1 > /proc/sys/net/ipv6/ip_nonlocal_bind';
  run('ip', 'netns', 'exec', namespace, 'sh', '-c', allow);
}

function hostOptions(name: HostName): HostOptions {
  const device = devices[name];
  const addresses = books.map(({ hosts }) => hosts[name]);
  return { name, addresses, ...(device && { device }) };
}
