import type { Family } from '../../model/ip.ts';
import { joinHostPort } from '../../model/ip.ts';
import type { Protocol } from '../../model/objects.ts';

/** Where a virtual server listens; no two have the same. */
export interface VirtualServerKey {
  /** Canonical text. */
  readonly address: string;
  readonly port: number;
  readonly protocol: Protocol;
}

/** A virtual server: one address, port and protocol that the kernel balances over real servers. */
export interface VirtualServer extends VirtualServerKey {
  readonly scheduler: string;
  /** `virtualServerFlags`, or-ed. */
  readonly flags: number;
  /** Seconds that a client stays with its real server; 0 when the server is not persistent. */
  readonly timeout: number;
  /** What persistence looks at of a client's address: a mask for IPv4, a prefix length for IPv6. */
  readonly netmask: number;
}

/** What the kernel counted for a virtual server since it was made. */
export interface VirtualServerCounts extends VirtualServerKey {
  readonly connections: number;
  /** In both directions. */
  readonly packets: number;
  readonly bytes: number;
}

export const virtualServerFlags = {
  /** Clients stay with their real server. */
  persistent: 0x1,
  /** The scheduler `mh` hashes the client's port as well. */
  mhPort: 0x10,
} as const;

/** A virtual server that serves marked packets or another protocol than ours; only other software makes those. */
export interface ForeignVirtualServer {
  /** What it serves, in words: `firewall mark 7`. */
  readonly foreign: string;
  readonly family: Family;
  readonly scheduler: string;
}

export type ListedVirtualServer = VirtualServer | ForeignVirtualServer;

export function isForeign(server: ListedVirtualServer): server is ForeignVirtualServer {
  return 'foreign' in server;
}

/** A server that a virtual server forwards to. */
export interface RealServerKey {
  /** Canonical text. */
  readonly address: string;
  readonly port: number;
}

export interface RealServer extends RealServerKey {
  /** 0 takes no new connections. */
  readonly weight: number;
}

/** A real server as the kernel reports it. */
export interface ListedRealServer extends RealServer {
  readonly forwarding: ForwardingMethod;
  /** Connections that are established. */
  readonly activeConnections: number;
  /** Connections in any other state. */
  readonly inactiveConnections: number;
  /** Clients that are bound to this server. */
  readonly persistentConnections: number;
}

/** How packets reach a real server. We only make `masquerade`, which is NAT. */
export type ForwardingMethod = 'masquerade' | 'local' | 'tunnel' | 'route' | 'other';

/** Seconds after which the kernel forgets idle connections. As a setting, 0 keeps what is set. */
export interface IpvsTimeouts {
  readonly tcp: number;
  readonly tcpFin: number;
  readonly udp: number;
}

/** One change. Deleting a virtual server deletes its real servers. */
export type IpvsOperation =
  | { readonly verb: 'add' | 'edit'; readonly server: VirtualServer }
  | { readonly verb: 'delete'; readonly server: VirtualServerKey }
  | { readonly verb: 'add' | 'edit'; readonly server: VirtualServerKey; readonly real: RealServer }
  | { readonly verb: 'delete'; readonly server: VirtualServerKey; readonly real: RealServerKey };

/** `10.96.0.10:53/UDP`, `[fd00::1]:80/TCP`. */
export function formatVirtualServer({ address, port, protocol }: VirtualServerKey): string {
  return `${joinHostPort(address, port)}/${protocol}`;
}

export function formatRealServer({ address, port }: RealServerKey): string {
  return joinHostPort(address, port);
}

const participles = { add: 'adding', edit: 'changing', delete: 'deleting' } as const;
const prepositions = { add: 'to', edit: 'of', delete: 'from' } as const;

/** `adding real server 10.0.0.1:80 to 10.96.0.1:80/TCP`. */
export function describeOperation(operation: IpvsOperation): string {
  const { verb, server } = operation;
  const where = formatVirtualServer(server);
  if (!('real' in operation)) return `${participles[verb]} virtual server ${where}`;
  return `${participles[verb]} real server ${formatRealServer(operation.real)} ${prepositions[verb]} ${where}`;
}
