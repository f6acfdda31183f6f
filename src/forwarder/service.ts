import { type Balancer, type Distribution, NoEndpointError } from './balancer.ts';
import type { Counters, EndpointTraffic, ServiceTraffic } from './counters.ts';
import type { Outlook } from './forwarder.ts';
import { encodeAddress, type SocketAddress } from './socket-address.ts';

/** A service as its connections use it: chooses endpoints and counts traffic. */
export class ServiceHandle {
  readonly key: string;
  readonly traffic: ServiceTraffic;
  readonly #balancer: Balancer;
  readonly #counters: Counters;
  /** Encoded addresses by endpoint name. */
  #addresses: ReadonlyMap<string, Uint8Array> = new Map();
  #draining: ReadonlySet<string> = new Set();
  #isRemoved = false;

  constructor(key: string, balancer: Balancer, counters: Counters) {
    this.key = key;
    this.traffic = counters.service(key);
    this.#balancer = balancer;
    this.#counters = counters;
  }

  setEndpoints(endpoints: ReadonlyMap<string, SocketAddress>, draining: ReadonlySet<string>): void {
    this.#draining = draining;
    this.#addresses = new Map([...endpoints].map(([name, address]) => [name, encodeAddress(address)]));
    this.#balancer.setEndpoints(this.key, [...endpoints.keys()]);
    this.#counters.retain(this.key, new Set(endpoints.keys()));
  }

  /** From now on `next` throws. A later service with the same key gets another handle. */
  remove(): void {
    this.#isRemoved = true;
    this.#balancer.setEndpoints(this.key, []);
    this.#balancer.deleteService(this.key);
    this.#counters.remove(this.key);
  }

  /**
   * Chooses the endpoint for a new connection, outside `avoid` if possible. A client bound to an endpoint outside
   * `avoid` keeps it, unless `reset`. Throws NoEndpointError.
   */
  next(client: () => string, avoid: ReadonlySet<string> | undefined, reset: boolean): string {
    // The key may already belong to a later service, whose endpoints this handle does not know.
    if (this.#isRemoved) throw new NoEndpointError(this.key, 'missing service entry');
    return this.#balancer.nextEndpoint(this.key, {
      client,
      reset,
      ...(avoid && { avoid }),
      load: (endpoint) => loadOf(this.traffic.endpoints.get(endpoint)),
    });
  }

  settings(): Distribution {
    return this.#balancer.distribution(this.key);
  }

  /** Returns where a client's next connection would go. */
  outlook(client: string): Pick<Outlook, 'turns' | 'bound'> {
    const { turns, bound } = this.#balancer.preview(this.key, client);
    const open = (endpoint: string): number => this.traffic.endpoints.get(endpoint)?.open ?? 0;
    return { turns: turns.map((endpoint) => ({ endpoint, open: open(endpoint) })), bound };
  }

  /** Whether sessions with this endpoint may continue. */
  keeps(endpoint: string): boolean {
    return this.#addresses.has(endpoint) || this.#draining.has(endpoint);
  }

  address(endpoint: string): Uint8Array {
    const address = this.#addresses.get(endpoint);
    if (!address) throw new Error(`${this.key} has no endpoint ${endpoint}`);
    return address;
  }

  endpointTraffic(endpoint: string): EndpointTraffic {
    return this.#counters.endpoint(this.key, endpoint);
  }
}

function loadOf(traffic: EndpointTraffic | undefined): number {
  return traffic ? traffic.open + traffic.dialling : 0;
}
