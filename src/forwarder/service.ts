import { type Balancer, type Distribution, NoEndpointError } from './balancer.ts';
import type { Counters, EndpointTraffic, ServiceTraffic } from './counters.ts';
import type { Outlook } from './forwarder.ts';
import { encodeAddress, type SocketAddress } from './socket-address.ts';

/** One service as connections see it: where to go next, and where to count. */
export class ServiceHandle {
  readonly key: string;
  readonly traffic: ServiceTraffic;
  readonly #balancer: Balancer;
  readonly #counters: Counters;
  /** Encoded addresses of the endpoints, by their name in the balancer. */
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

  /** From now on nobody gets an endpoint here. A service of the same key that comes later has a handle of its own. */
  remove(): void {
    this.#isRemoved = true;
    this.#balancer.setEndpoints(this.key, []);
    this.#balancer.deleteService(this.key);
    this.#counters.forget(this.key);
  }

  /** The endpoint for a new connection, not one of those that failed it if possible; throws NoEndpointError. */
  next(client: () => string, failed?: ReadonlySet<string>): string {
    return this.#next(client, failed, failed !== undefined);
  }

  /** The same for one that need not have failed itself: a client that is bound to another endpoint stays there. */
  nextBut(client: () => string, avoid: ReadonlySet<string> | undefined): string {
    return this.#next(client, avoid, false);
  }

  settings(): Distribution {
    return this.#balancer.distribution(this.key);
  }

  /** What awaits the next connection of a client. */
  outlook(client: string): Pick<Outlook, 'turns' | 'bound'> {
    const { turns, bound } = this.#balancer.preview(this.key, client);
    const open = (endpoint: string): number => this.traffic.endpoints.get(endpoint)?.open ?? 0;
    return { turns: turns.map((endpoint) => ({ endpoint, open: open(endpoint) })), bound };
  }

  /** Sessions with this endpoint may go on. */
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

  #next(client: () => string, avoid: ReadonlySet<string> | undefined, reset: boolean): string {
    // By now the key may stand for another service, whose endpoints are not known here.
    if (this.#isRemoved) throw new NoEndpointError(this.key, 'missing service entry');
    return this.#balancer.nextEndpoint(this.key, {
      client,
      reset,
      ...(avoid && { avoid }),
      load: (endpoint) => loadOf(this.traffic.endpoints.get(endpoint)),
    });
  }
}

function loadOf(traffic: EndpointTraffic | undefined): number {
  return traffic ? traffic.open + traffic.dialling : 0;
}
