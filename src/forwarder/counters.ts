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
  readonly endpoints: Map<string, EndpointTraffic>;
}

/** Counts traffic per service and per endpoint, until the service is removed. */
export class Counters {
  readonly #services = new Map<string, ServiceTraffic>();

  service(key: string): ServiceTraffic {
    const known = this.#services.get(key);
    if (known) return known;
    const traffic = { ...nothing(), unserved: 0, endpoints: new Map() };
    this.#services.set(key, traffic);
    return traffic;
  }

  endpoint(key: string, endpoint: string): EndpointTraffic {
    const { endpoints } = this.service(key);
    const known = endpoints.get(endpoint);
    if (known) return known;
    const traffic = { ...nothing(), dialFailures: 0, dialling: 0 };
    endpoints.set(endpoint, traffic);
    return traffic;
  }

  /** Removes endpoints that are not in `endpoints` and have nothing open. */
  retain(key: string, endpoints: ReadonlySet<string>): void {
    const traffic = this.#services.get(key);
    if (!traffic) return;
    for (const [endpoint, { open, dialling }] of traffic.endpoints) {
      if (open + dialling === 0 && !endpoints.has(endpoint)) traffic.endpoints.delete(endpoint);
    }
  }

  remove(key: string): void {
    this.#services.delete(key);
  }

  all(): ReadonlyMap<string, ServiceTraffic> {
    return this.#services;
  }
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

function nothing(): Traffic {
  return { connections: 0, open: 0, bytesIn: 0, bytesOut: 0 };
}
