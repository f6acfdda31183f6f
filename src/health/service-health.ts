import type { Capacity } from '../http/capacity.ts';
import { jsonHeaders, type Replier, reply } from '../lib/http.ts';
import { listenErrorText } from '../lib/listen-error.ts';
import { joinHostPort } from '../model/ip.ts';
import { sameStrings } from '../model/same-strings.ts';
import type { Logger } from '../obs/log.ts';
import { PortListener } from './port-listener.ts';

/** A health-check port that failed to open. */
export interface BindFailure {
  readonly namespace: string;
  readonly name: string;
  readonly port: number;
  /** Text of the event. */
  readonly note: string;
}

export interface ServiceHealthOptions {
  readonly nodeName: string;
  /** Whether the proxy works; true if absent. */
  readonly proxyHealthy?: () => boolean;
  readonly onBindFailure: (failure: BindFailure) => void;
  readonly capacity: Capacity;
  readonly logger: Logger;
}

interface Service {
  readonly key: string;
  readonly port: number;
  readonly addresses: readonly string[];
  readonly listener: PortListener;
}

/**
 * The health-check node ports of LoadBalancer services with external policy Local, in one family. Each tells a load
 * balancer whether this node has endpoints of the service. Keys are `namespace/name`.
 */
export class ServiceHealthServers {
  readonly #options: ServiceHealthOptions;
  readonly #services = new Map<string, Service>();
  #addresses: readonly string[] = [];
  #counts: ReadonlyMap<string, number> = new Map();
  #turn: Promise<void> = Promise.resolve();

  constructor(options: ServiceHealthOptions) {
    this.#options = options;
  }

  /**
   * Sets the addresses of one family to listen on, or one wildcard; without any, no port is opened and no failure
   * reported. The next sync opens every port again, if they differ from those before.
   */
  listenOn(addresses: readonly string[]): void {
    if (!sameStrings(addresses, this.#addresses)) this.#addresses = addresses;
  }

  /**
   * Opens and closes ports until they are those of `ports`, and sets the counts of local ready endpoint addresses.
   * Resolves when every port is open or reported as failed; the next sync tries a failed port again.
   */
  sync(ports: ReadonlyMap<string, number>, localReadyCounts: ReadonlyMap<string, number>): Promise<void> {
    const wanted = new Map(ports);
    // Keep only the counts that are needed: the map may hold every Service of the cluster.
    this.#counts = new Map([...ports.keys()].map((key) => [key, localReadyCounts.get(key) ?? 0]));
    // One at a time, also after one that failed.
    const reconcile = () => this.#reconcile(wanted);
    this.#turn = this.#turn.then(reconcile, reconcile);
    return this.#turn;
  }

  /** Closes every port. */
  close(): Promise<void> {
    return this.sync(new Map(), new Map());
  }

  async #reconcile(wanted: ReadonlyMap<string, number>): Promise<void> {
    for (const service of this.#services.values()) {
      const isWanted = wanted.get(service.key) === service.port && service.addresses === this.#addresses;
      if (!isWanted) this.#close(service);
    }
    const missing = [...wanted].filter(([key]) => !this.#services.has(key));
    await Promise.all(missing.map(([key, port]) => this.#open(key, port)));
  }

  #close(service: Service): void {
    this.#options.logger.v(2).info('Closing health-check port', { service: service.key, port: service.port });
    service.listener.close();
    this.#services.delete(service.key);
  }

  async #open(key: string, port: number): Promise<void> {
    const { logger, capacity } = this.#options;
    const addresses = this.#addresses;
    const listener = new PortListener((_request, response) => this.#answer(key, response), capacity);
    try {
      await listener.open(addresses, port);
      this.#services.set(key, { key, port, addresses, listener });
      logger.v(2).info('Opened health-check port', { service: key, port });
    } catch (error) {
      listener.close();
      this.#reportFailure(key, port, error);
    }
  }

  #reportFailure(key: string, port: number, error: unknown): void {
    const { nodeName, onBindFailure, logger } = this.#options;
    logger.error(error, 'Failed to open health-check port', { service: key, port });
    const note = `node ${nodeName} failed to start healthcheck "${key}" on port ${port}: ${causeOf(error, port)}`;
    onBindFailure({ ...splitKey(key), port, note });
  }

  #answer(key: string, response: Replier): void {
    const localEndpoints = this.#counts.get(key) ?? 0;
    const serviceProxyHealthy = this.#options.proxyHealthy?.() ?? true;
    const body = JSON.stringify({ service: splitKey(key), localEndpoints, serviceProxyHealthy }, null, '\t');
    const isGood = localEndpoints !== 0 && serviceProxyHealthy;
    const headers = { ...jsonHeaders, 'X-Load-Balancing-Endpoint-Weight': String(localEndpoints) };
    reply(response, isGood ? 200 : 503, headers, body);
  }
}

/** Returns why a port failed to open. Node's error has the address. */
function causeOf(error: unknown, port: number): string {
  if (!(error instanceof Error)) return String(error);
  const address = 'address' in error ? String(error.address) : '';
  return listenErrorText(joinHostPort(address, port), error);
}

function splitKey(key: string): { namespace: string; name: string } {
  const slash = key.indexOf('/');
  return { namespace: key.slice(0, slash), name: key.slice(slash + 1) };
}
