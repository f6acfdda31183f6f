/** Traffic so far. `in` means from clients to endpoints. */
export interface Traffic {
  /** TCP connections and UDP sessions ever begun. */
  connections: number;
  /** Connections and sessions open now. */
  open: number;
  bytesIn: number;
  bytesOut: number;
}

/** Traffic of one endpoint of a service. */
export interface EndpointTraffic extends Traffic {
  dialFailures: number;
  /** Connection attempts under way. */
  dialling: number;
}

/** Traffic of one service. */
export interface ServiceTraffic extends Traffic {
  /** Connections that found no endpoint. */
  unserved: number;
  /** By endpoint name. */
  readonly endpoints: Map<string, EndpointTraffic>;
}

export function noTraffic(): Traffic {
  return { connections: 0, open: 0, bytesIn: 0, bytesOut: 0 };
}

/** Counts the start of a connection or session. */
export function begin(...traffic: readonly Traffic[]): void {
  for (const each of traffic) {
    each.connections++;
    each.open++;
  }
}

export function end(...traffic: readonly Traffic[]): void {
  for (const each of traffic) each.open--;
}
