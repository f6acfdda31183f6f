import type { Family } from '../../src/model/ip.ts';

/**
 * Machines besides the node n1: pods on it (pod, A, C), pods on n2 (B, D, remote), clients outside the cluster, and
 * the rest of the world.
 */
export type HostName = 'pod' | 'A' | 'B' | 'C' | 'D' | 'remote' | 'outside' | 'world';

/** Clients outside the cluster. They are one host with several addresses. */
export type ClientName = 'client' | 'stranger' | 'tenant';

/** Source ranges of load balancers. */
export type RangeName = 'everyone' | 'clients' | 'tenants' | 'some tenants' | 'nodes' | 'pods';

/** The addresses that one service may have. */
export interface ServiceAddresses {
  readonly clusterIP: string;
  readonly external: string;
  readonly loadBalancer: string;
}

/** The addresses of hosts and services in one family, as canonical text. */
export interface AddressBook {
  readonly family: Family;
  /** The node's own address, and a second address that is not in the Node object. */
  readonly node: string;
  readonly nodeSecond: string;
  readonly hosts: Readonly<Record<HostName, string>>;
  readonly clients: Readonly<Record<ClientName, string>>;
  readonly ranges: Readonly<Record<RangeName, string>>;
  readonly clusterCIDR: string;
  readonly podCIDR: string;
  readonly serviceCIDR: string;
  /** In the service CIDR, but of no service. */
  readonly unallocated: string;
  /** In the pod network, but of no pod. */
  readonly nobody: string;
  readonly loopback: string;
  /** Networks of clients outside. */
  readonly clientNetworks: readonly string[];
  /** Networks for which the rest of the world answers: those of services, for packets that the node leaves alone. */
  readonly worldNetworks: readonly string[];
  /** Addresses of the n-th service; n from 1. */
  service(n: number): ServiceAddresses;
  /** The n-th of many clients outside. */
  crowd(n: number): string;
}

const v4: AddressBook = {
  family: 'IPv4',
  node: '192.0.2.10',
  nodeSecond: '198.51.100.10',
  hosts: {
    pod: '10.244.1.5',
    A: '10.244.1.21',
    B: '10.244.2.21',
    C: '10.244.1.22',
    D: '10.244.2.22',
    remote: '10.244.2.5',
    outside: '203.0.113.1',
    world: '192.88.99.1',
  },
  clients: { client: '203.0.113.5', stranger: '203.0.113.200', tenant: '10.1.2.3' },
  ranges: {
    everyone: '0.0.0.0/0',
    clients: '203.0.113.0/25',
    tenants: '10.0.0.0/8',
    'some tenants': '10.1.0.0/16',
    nodes: '192.0.2.0/24',
    pods: '10.244.1.0/24',
  },
  clusterCIDR: '10.244.0.0/16',
  podCIDR: '10.244.1.0/24',
  serviceCIDR: '10.96.0.0/16',
  unallocated: '10.96.200.200',
  nobody: '10.244.2.99',
  loopback: '127.0.0.1',
  clientNetworks: ['203.0.113.0/24', '10.1.0.0/16'],
  worldNetworks: ['198.18.0.0/15', '10.96.0.0/16'],
  service(n) {
    const suffix = `${n >> 8}.${n & 255}`;
    return {
      clusterIP: `10.96.${suffix}`,
      external: `198.19.${suffix}`,
      loadBalancer: `198.18.${suffix}`,
    };
  },
  crowd: (n) => `203.0.113.${10 + n}`,
};

const v6: AddressBook = {
  family: 'IPv6',
  node: '2001:db8:0:1::10',
  nodeSecond: '2001:db8:0:2::10',
  hosts: {
    pod: 'fd00:244:1::5',
    A: 'fd00:244:1::21',
    B: 'fd00:244:2::21',
    C: 'fd00:244:1::22',
    D: 'fd00:244:2::22',
    remote: 'fd00:244:2::5',
    outside: '2001:db8:ffff::1',
    world: '2001:db8:dead::1',
  },
  clients: { client: '2001:db8:ffff::5', stranger: '2001:db8:ffff:8000::5', tenant: 'fd0a:1::3' },
  ranges: {
    everyone: '::/0',
    clients: '2001:db8:ffff::/49',
    tenants: 'fd0a::/16',
    'some tenants': 'fd0a:1::/32',
    nodes: '2001:db8::/46',
    pods: 'fd00:244:1::/64',
  },
  clusterCIDR: 'fd00:244::/32',
  podCIDR: 'fd00:244:1::/64',
  serviceCIDR: 'fd00:96::/112',
  unallocated: 'fd00:96::dead',
  nobody: 'fd00:244:2::99',
  loopback: '::1',
  clientNetworks: ['2001:db8:ffff::/48', 'fd0a:1::/32'],
  worldNetworks: ['2001:db8:e::/48', '2001:db8:1b::/48', 'fd00:96::/112'],
  service(n) {
    const suffix = n.toString(16);
    return {
      clusterIP: `fd00:96::${suffix}`,
      external: `2001:db8:e::${suffix}`,
      loadBalancer: `2001:db8:1b::${suffix}`,
    };
  },
  crowd: (n) => `2001:db8:ffff::${(0x10 + n).toString(16)}`,
};

export const addressBooks: Readonly<Record<Family, AddressBook>> = { IPv4: v4, IPv6: v6 };
