import type { Choice } from './balancer.ts';
import type { ServiceTraffic } from './counters.ts';
import type { SocketAddress } from './socket-address.ts';

/** Where connections of one service go. Plain data: it may cross to another thread. */
export interface ForwardedService {
  readonly endpoints: readonly SocketAddress[];
  /** Endpoints that get no new connections; UDP sessions with them go on. */
  readonly draining?: readonly SocketAddress[];
  /** 0 = none. */
  readonly affinitySeconds: number;
  readonly choice: Choice;
}

/** Where connections come in. */
export interface Listening {
  /** Key of the service. */
  readonly service: string;
  readonly protocol: 'TCP' | 'UDP';
  /** Port 0 leaves the choice to the system. */
  readonly at: SocketAddress;
}

/** A listener as the forwarder has it, with what its service is told. */
export interface ListenerState extends Listening {
  /** Names of endpoints that take new connections, in no particular order. */
  readonly endpoints: readonly string[];
  readonly affinitySeconds: number;
  readonly choice: Choice;
}

/** What a new connection of one client would meet at a listener. */
export interface Outlook {
  readonly listener: ListenerState;
  /** Endpoints in the order of their turns, the next one first, and how many connections each has. */
  readonly turns: readonly { readonly endpoint: string; readonly open: number }[];
  /** The endpoint that the client is bound to by affinity. */
  readonly bound: string | undefined;
}

/** Traffic of a service, with its endpoints. */
export type TrafficReport = ReadonlyMap<string, ServiceTraffic>;

/**
 * Accepts connections and datagrams and passes them on to endpoints. Services and listeners go by keys that the
 * caller chooses; every method may be called in any order.
 */
export interface Forwarder {
  /** Makes a service known, or changes it. Open TCP connections stay where they are. */
  setService(key: string, service: ForwardedService): void;
  /** Its listeners are to be closed before; open connections go on. */
  removeService(key: string): void;
  /** Begins to listen and gives the port; rejects with the reason when the address cannot be had. */
  listen(id: string, listening: Listening): Promise<number>;
  /** Stops listening. Open TCP connections go on, unless they are to end as well. */
  unlisten(id: string, endConnections: boolean): void;
  /** What went through so far. */
  traffic(): Promise<TrafficReport>;
  /** Every listener there is, by id. */
  listeners(): Promise<ReadonlyMap<string, ListenerState>>;
  /** Undefined when nobody listens for what is sent to this address. */
  outlook(protocol: Listening['protocol'], to: SocketAddress, client: string): Promise<Outlook | undefined>;
  /** Ends everything. */
  close(): Promise<void>;
}

export interface ForwarderOptions {
  /** Milliseconds that each attempt to reach an endpoint may take; there are as many attempts. */
  readonly dialTimeouts: readonly number[];
  readonly udpIdleMs: number;
}

/** An endpoint's name in balancer and counters. */
export function endpointName({ ip, port }: SocketAddress): string {
  return ip.includes(':') ? `[${ip}]:${port}` : `${ip}:${port}`;
}
