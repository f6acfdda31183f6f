import type { Clock } from '../../lib/clock.ts';
import type { Family } from '../../model/ip.ts';
import type { Logger } from '../../obs/log.ts';
import type { ProxyMetrics } from '../../obs/proxy-metrics.ts';
import type { ServicePlan } from '../../plan/service-plan.ts';
import type { SyncRequest } from '../backend.ts';
import { type LoopbackEndpoint, LoopbackListener } from './loopback-listener.ts';

export interface LoopbackProxyOptions {
  readonly family: Family;
  readonly metrics: Pick<ProxyMetrics, 'localhostNodePortListeners' | 'localhostNodePortListenFailures'>;
  readonly logger: Logger;
  readonly clock: Clock;
  /** A number in [0, 1). */
  readonly random: () => number;
}

/**
 * Serves TCP node ports on the loopback address from user space: the kernel cannot forward what comes from there.
 * Exists only where the configuration asks for loopback by name and the feature gate is on.
 */
export class LoopbackProxy {
  readonly #options: LoopbackProxyOptions;
  readonly #listeners = new Map<string, LoopbackListener>();

  constructor(options: LoopbackProxyOptions) {
    this.#options = options;
  }

  /** Follows a sync that succeeded. Listeners that could not be opened are tried again at every one of them. */
  async update({ plans, changed }: Pick<SyncRequest, 'plans' | 'changed'>): Promise<void> {
    const keys = changed === 'all' ? new Set([...this.#listeners.keys(), ...plans.keys()]) : changed;
    for (const key of keys) this.#follow(key, plans.get(key));
    await Promise.all([...this.#listeners.values()].map((listener) => this.#open(listener)));
    const open = [...this.#listeners.values()].filter((listener) => listener.isOpen);
    this.#options.metrics.localhostNodePortListeners.set(open.length, { ip_family: this.#options.family });
  }

  /** Closes all listeners together with their connections. */
  close(): void {
    for (const listener of this.#listeners.values()) listener.close();
    this.#listeners.clear();
  }

  #follow(key: string, plan: ServicePlan | undefined): void {
    const endpoints = plan ? endpointsOf(plan) : [];
    const port = plan?.port.nodePort ?? 0;
    const known = this.#listeners.get(key);
    if (known && (endpoints.length === 0 || known.port !== port)) {
      known.close();
      this.#listeners.delete(key);
    }
    if (!plan || endpoints.length === 0) return;
    const listener = this.#listeners.get(key) ?? this.#newListener(port);
    listener.serve(endpoints, plan.port.affinitySeconds);
    this.#listeners.set(key, listener);
  }

  #newListener(port: number): LoopbackListener {
    const { family, clock, random } = this.#options;
    return new LoopbackListener(family === 'IPv4' ? '127.0.0.1' : '::1', port, { clock, random });
  }

  async #open(listener: LoopbackListener): Promise<void> {
    if (listener.isOpen) return;
    const { family, metrics, logger } = this.#options;
    try {
      await listener.open();
    } catch (error) {
      metrics.localhostNodePortListenFailures.inc({ ip_family: family });
      logger.error(error, 'Failed to listen for a node port on loopback', {
        ip_family: family,
        nodePort: listener.port,
      });
    }
  }
}

/** Policy Local has no short cut to endpoints elsewhere here: the connection comes from the node, not to it. */
function endpointsOf({ port, cluster, local }: ServicePlan): readonly LoopbackEndpoint[] {
  if (port.protocol !== 'TCP' || port.nodePort === 0) return [];
  return port.externalPolicyLocal ? local : cluster;
}
