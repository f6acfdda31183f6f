import type { Choice } from './balancer.ts';
import type { ConnectionReport } from './connection-log.ts';
import type { SocketAddress } from './socket-address.ts';
import type { ServiceTraffic } from './traffic.ts';

/** Where connections of one service go. Plain data, so it can be sent to another thread. */
export interface ForwardedService {
  readonly endpoints: readonly SocketAddress[];
  /** Endpoints that get no new connections; their UDP sessions continue. */
  readonly draining?: readonly SocketAddress[];
  /** 0 = none. */
  readonly affinitySeconds: number;
  readonly choice: Choice;
}

/** An address to accept traffic at. */
export interface Listening {
  /** Key of the service. */
  readonly service: string;
  readonly protocol: 'TCP' | 'UDP';
  /** With port 0 the system chooses. */
  readonly at: SocketAddress;
  /** The clients whose own address endpoints see; they see the node's for all others, or if this is absent. */
  readonly kept?: KeptSources;
}

/**
 * Clients whose address endpoints see, except an endpoint that is the client itself. Needs CAP_NET_ADMIN, and rules that
 * bring the answers here (`clientSourceMark`).
 */
export interface KeptSources {
  /** The network of these clients, a CIDR. */
  readonly of: string;
  /** Only those that connected to this address, before destination NAT. Not for UDP. */
  readonly at?: string;
}

/** An open listener and the settings of its service. */
export interface ListenerState extends Listening {
  /** Names of the endpoints that get new connections, in no particular order. */
  readonly endpoints: readonly string[];
  readonly affinitySeconds: number;
  readonly choice: Choice;
}

/** Where a listener would send a client's new connection. */
export interface Outlook {
  readonly listener: ListenerState;
  /** Endpoints in turn order, the next one first, and the number of open connections of each. */
  readonly turns: readonly { readonly endpoint: string; readonly open: number }[];
  /** The endpoint that the client is bound to by affinity, and for how long. */
  readonly bound: { readonly endpoint: string; readonly secondsLeft: number } | undefined;
}

/** Clients that affinity binds to endpoints of a service, those that called last first. */
export interface BindingPage {
  readonly bindings: readonly {
    readonly client: string;
    readonly endpoint: string;
    readonly secondsLeft: number;
  }[];
  /** Where the next page begins; undefined after the last one. */
  readonly next: number | undefined;
}

/** Traffic by service key. */
export type TrafficReport = ReadonlyMap<string, ServiceTraffic>;

/**
 * Accepts connections and datagrams and forwards them to endpoints. The caller chooses the keys of services and the ids
 * of listeners. Methods may be called in any order.
 */
export interface Forwarder {
  /** Adds or changes a service. Open TCP connections keep their endpoint. */
  setService(key: string, service: ForwardedService): void;
  /** Removes a service whose listeners have been closed. Open connections continue. */
  removeService(key: string): void;
  /** Starts listening and resolves to the port; rejects when the address is not available. */
  listen(id: string, listening: Listening): Promise<number>;
  /** Stops listening. Open TCP connections continue unless `endConnections` is true. */
  unlisten(id: string, endConnections: boolean): void;
  traffic(): Promise<TrafficReport>;
  /** Which connections got which endpoint since the last call; all open ones when nobody called for a minute. */
  connections(): Promise<ConnectionReport>;
  /** Resolves to all listeners by id. */
  listeners(): Promise<ReadonlyMap<string, ListenerState>>;
  /** Resolves to undefined when no listener accepts traffic to this address. */
  outlook(protocol: Listening['protocol'], to: SocketAddress, client: string): Promise<Outlook | undefined>;
  /** A page of the bindings of a service, the first one without `start`. Clients that call meanwhile may be missing. */
  bindings(key: string, start?: number): Promise<BindingPage>;
  /** Closes all listeners and connections. */
  close(): Promise<void>;
}

export interface ForwarderOptions {
  /** Timeout of each attempt to connect to an endpoint, in milliseconds; its length is the number of attempts. */
  readonly dialTimeouts: readonly number[];
  readonly udpIdleMs: number;
}

/** Returns an endpoint's name in balancer and counters. */
export function endpointName({ ip, port }: SocketAddress): string {
  return ip.includes(':') ? `[${ip}]:${port}` : `${ip}:${port}`;
}
