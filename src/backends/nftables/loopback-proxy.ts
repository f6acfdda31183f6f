import { choiceFor } from '../../forwarder/balancer.ts';
import type { ForwardedService, Forwarder, Outlook } from '../../forwarder/forwarder.ts';
import { openLocalForwarder } from '../../forwarder/open.ts';
import type { Report } from '../../forwarder/reports.ts';
import type { Clock } from '../../lib/clock.ts';
import type { Endpoint } from '../../model/endpoint.ts';
import type { Family } from '../../model/ip.ts';
import type { Logger } from '../../obs/log.ts';
import type { ProxyMetrics } from '../../obs/proxy-metrics.ts';
import { frontendsOf } from '../../plan/frontend.ts';
import type { ServicePlan } from '../../plan/service-plan.ts';
import type { SyncRequest } from '../backend.ts';

export interface LoopbackProxyOptions {
  readonly family: Family;
  readonly metrics: Pick<ProxyMetrics, 'localhostNodePortListeners' | 'localhostNodePortListenFailures'>;
  readonly logger: Logger;
  readonly clock: Clock;
  /** A number in [0, 1). */
  readonly random: () => number;
  readonly openForwarder?: typeof openLocalForwarder;
}

/** One attempt; if it fails, the client's connection is closed. */
const dialTimeouts = [5_000];
/** As long as the kernel remembers a flow of datagrams by default. */
const udpIdleMs = 30_000;

/** A node port to serve, and whether it is. */
interface Listener {
  readonly port: number;
  readonly protocol: 'TCP' | 'UDP';
  readonly service: ForwardedService;
  isOpen: boolean;
}

/**
 * Serves TCP and UDP node ports on the loopback address from user space: the kernel cannot forward what comes from
 * there. Exists only where the configuration asks for loopback by name and the feature gate is on.
 */
export class LoopbackProxy {
  readonly #options: LoopbackProxyOptions;
  readonly #listeners = new Map<string, Listener>();
  /** Opened with the first node port. */
  #forwarder: Promise<Forwarder> | undefined;

  constructor(options: LoopbackProxyOptions) {
    this.#options = options;
  }

  /** Opens and closes listeners after a successful sync. Retries those that could not be opened. */
  async update({ plans, changed }: Pick<SyncRequest, 'plans' | 'changed'>): Promise<void> {
    const keys = changed === 'all' ? new Set([...this.#listeners.keys(), ...plans.keys()]) : changed;
    for (const key of keys) await this.#follow(key, plans.get(key));
    for (const [key, listener] of this.#listeners) if (!listener.isOpen) await this.#open(key, listener);
    const open = [...this.#listeners.values()].filter((listener) => listener.isOpen);
    this.#options.metrics.localhostNodePortListeners.set(open.length, { ip_family: this.#options.family });
  }

  /** Where a new connection to this address would go; undefined when nothing listens there. */
  async outlook(...question: Parameters<Forwarder['outlook']>): Promise<Outlook | undefined> {
    return (await this.#forwarder)?.outlook(...question);
  }

  /** Closes all listeners together with their connections. */
  close(): void {
    this.#listeners.clear();
    this.#forwarder?.then((forwarder) => forwarder.close()).catch(() => undefined);
    this.#forwarder = undefined;
  }

  async #follow(key: string, plan: ServicePlan | undefined): Promise<void> {
    const served = plan && servedBy(plan);
    const known = this.#listeners.get(key);
    if (known && known.port !== served?.port) await this.#end(key);
    if (!served) return;
    const { port, protocol } = served;
    const endpoints = served.endpoints.map(({ ip, port: at }) => ({ ip, port: at }));
    const service: ForwardedService = {
      endpoints,
      affinitySeconds: plan.port.affinitySeconds,
      choice: choiceFor(plan.balance, 'random'),
    };
    const isOpen = this.#listeners.get(key)?.isOpen ?? false;
    this.#listeners.set(key, { port, protocol, service, isOpen });
    if (isOpen) (await this.#opened()).setService(key, service);
  }

  async #end(key: string): Promise<void> {
    this.#listeners.delete(key);
    const forwarder = await this.#forwarder;
    forwarder?.unlisten(key, true);
    forwarder?.removeService(key);
  }

  async #open(key: string, listener: Listener): Promise<void> {
    const { family, metrics, logger } = this.#options;
    const { port, protocol } = listener;
    try {
      const forwarder = await this.#opened();
      forwarder.setService(key, listener.service);
      const at = { ip: family === 'IPv4' ? '127.0.0.1' : '::1', port };
      await forwarder.listen(key, { service: key, protocol, at });
      listener.isOpen = true;
    } catch (error) {
      metrics.localhostNodePortListenFailures.inc({ ip_family: family });
      logger.error(error, 'Failed to listen for a node port on loopback', {
        ipFamily: family,
        nodePort: port,
      });
    }
  }

  #opened(): Promise<Forwarder> {
    const { clock, random, logger, openForwarder = openLocalForwarder } = this.#options;
    const report = ({ problem, detail, times }: Report): void => logger.v(2).info(problem, { detail, times });
    this.#forwarder ??= openForwarder({ dialTimeouts, udpIdleMs, clock, random, report }).catch((error) => {
      this.#forwarder = undefined;
      throw error;
    });
    return this.#forwarder;
  }
}

interface ServedPort {
  readonly port: number;
  readonly protocol: 'TCP' | 'UDP';
  readonly endpoints: readonly Endpoint[];
}

/**
 * Policy Local applies here without its exception for local clients: the connection comes from the node, not to it.
 */
function servedBy(plan: ServicePlan): ServedPort | undefined {
  const { protocol, nodePort: port } = plan.port;
  const frontend = [...frontendsOf(plan)].find(({ kind }) => kind === 'node port');
  if (protocol === 'SCTP' || frontend?.outside.action !== 'forward') return undefined;
  return { port, protocol, endpoints: plan[frontend.outside.endpoints] };
}
