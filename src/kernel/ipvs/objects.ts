import type { Family } from '../../model/ip.ts';
import { joinHostPort } from '../../model/ip.ts';
import type { Protocol } from '../../model/objects.ts';

/** Identifies a virtual server. */
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
  /** Seconds for which a client keeps its real server; 0 without persistence. */
  readonly timeout: number;
  /** The part of a client's address that persistence uses: a mask for IPv4, a prefix length for IPv6. */
  readonly netmask: number;
}

export const virtualServerFlags = {
  /** Clients keep their real server. */
  persistent: 0x1,
  /** The scheduler `mh` passes over real servers of weight 0; without this it refuses their clients. */
  mhFallback: 0x8,
  /** The scheduler `mh` hashes the client's port as well. */
  mhPort: 0x10,
} as const;

/** A virtual server for firewall marks or for another protocol, which only other software creates. */
export interface ForeignVirtualServer {
  /** Text for people: `firewall mark 7`. */
  readonly foreign: string;
  readonly family: Family;
  readonly scheduler: string;
}

export type ListedVirtualServer = VirtualServer | ForeignVirtualServer;

export function isForeign(server: ListedVirtualServer): server is ForeignVirtualServer {
  return 'foreign' in server;
}

/** Identifies a real server of a virtual server. */
export interface RealServerKey {
  /** Canonical text. */
  readonly address: string;
  readonly port: number;
}

export interface RealServer extends RealServerKey {
  /** With 0 the server gets no new connections. */
  readonly weight: number;
}

/** A real server as the kernel reports it. */
export interface ListedRealServer extends RealServer {
  readonly forwarding: ForwardingMethod;
  /** Established connections. */
  readonly activeConnections: number;
  /** Connections in any other state. */
  readonly inactiveConnections: number;
  /** Clients that persistence binds to this server. */
  readonly persistentConnections: number;
}

/** How packets reach a real server. This program uses only `masquerade`, which is NAT. */
export type ForwardingMethod = 'masquerade' | 'local' | 'tunnel' | 'route' | 'other';

/** Seconds after which the kernel forgets idle connections. Setting 0 leaves a timeout as it is. */
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
