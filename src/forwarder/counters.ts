/** What went through so far. `in` is from clients to endpoints. */
export interface Traffic {
  /** TCP connections and UDP sessions that were begun. */
  connections: number;
  /** Those of them that are open. */
  open: number;
  bytesIn: number;
  bytesOut: number;
}

/** Traffic of one endpoint of a service, and how often it did not answer. */
export interface EndpointTraffic extends Traffic {
  dialFailures: number;
  /** Connections that are being made. */
  dialling: number;
}

/** Traffic of one service, and connections that found no endpoint. */
export interface ServiceTraffic extends Traffic {
  unserved: number;
  readonly endpoints: Map<string, EndpointTraffic>;
}

/** Counts per service and per endpoint. What is counted once is kept until the service is forgotten. */
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

  /** Drops endpoints that are no longer in the list and have nothing open. */
  retain(key: string, endpoints: ReadonlySet<string>): void {
    const traffic = this.#services.get(key);
    if (!traffic) return;
    for (const [endpoint, { open, dialling }] of traffic.endpoints) {
      if (open + dialling === 0 && !endpoints.has(endpoint)) traffic.endpoints.delete(endpoint);
    }
  }

  forget(key: string): void {
    this.#services.delete(key);
  }

  all(): ReadonlyMap<string, ServiceTraffic> {
    return this.#services;
  }
}

/** Notes the begin of a connection or session in both counts. */
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
