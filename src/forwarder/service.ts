import { Balancer, type BalancerOptions } from './balancer.ts';
import { endpointName, type ForwardedService, type Outlook } from './forwarder.ts';
import { encodeAddress, type SocketAddress } from './socket-address.ts';
import { type EndpointTraffic, noTraffic, type ServiceTraffic } from './traffic.ts';

/** A service as its connections use it: chooses endpoints and counts traffic. */
export class ServiceHandle {
  readonly key: string;
  readonly traffic: ServiceTraffic = { ...noTraffic(), unserved: 0, endpoints: new Map() };
  readonly balancer: Balancer;
  /** Encoded addresses by endpoint name. */
  #addresses: ReadonlyMap<string, Uint8Array> = new Map();
  #draining: ReadonlySet<string> = new Set();

  constructor(key: string, options: BalancerOptions) {
    this.key = key;
    this.balancer = new Balancer(options);
  }

  /** Changes endpoints and settings. Forgets the traffic of removed endpoints that have nothing open. */
  set({ endpoints, draining = [], affinitySeconds, choice }: ForwardedService): void {
    this.balancer.configure(affinitySeconds, choice);
    this.#addresses = new Map(endpoints.map((endpoint) => [endpointName(endpoint), encodeAddress(endpoint)]));
    this.#draining = new Set(draining.map(endpointName));
    this.balancer.setEndpoints([...this.#addresses.keys()]);
    for (const [endpoint, { open, dialling }] of this.traffic.endpoints) {
      if (open + dialling === 0 && !this.#addresses.has(endpoint)) this.traffic.endpoints.delete(endpoint);
    }
  }

  /** From now on there are no endpoints. A later service with the same key gets another handle. */
  remove(): void {
    this.balancer.configure(0, 'round-robin');
    this.balancer.setEndpoints([]);
  }

  /**
   * Chooses the endpoint for a new connection, outside `avoid` if possible; counts the connection as unserved and
   * returns undefined without endpoints. A client bound to an endpoint outside `avoid` keeps it, unless `reset`.
   */
  next(
    client: () => SocketAddress,
    avoid: ReadonlySet<string> | undefined,
    reset: boolean,
  ): string | undefined {
    const load = (endpoint: string): number => loadOf(this.traffic.endpoints.get(endpoint));
    const endpoint = this.balancer.next({ client, reset, load, ...(avoid && { avoid }) });
    if (endpoint === undefined) this.traffic.unserved++;
    return endpoint;
  }

  /** Returns where a client's next connection would go. */
  outlook(client: string): Pick<Outlook, 'turns' | 'bound'> {
    const { turns, bound } = this.balancer.preview(client);
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
    const known = this.traffic.endpoints.get(endpoint);
    if (known) return known;
    const traffic = { ...noTraffic(), dialFailures: 0, dialling: 0 };
    this.traffic.endpoints.set(endpoint, traffic);
    return traffic;
  }
}

function loadOf(traffic: EndpointTraffic | undefined): number {
  return traffic ? traffic.open + traffic.dialling : 0;
}
