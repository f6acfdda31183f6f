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
