import type { NodeForwarder } from '../../forwarder/open.ts';
import { isAlreadyExists, isNotFound } from '../../kernel/nft/errors.ts';
import type { KernelInterfaces } from '../../kernel/open.ts';
import type { Clock } from '../../lib/clock.ts';
import { type Family, joinHostPort } from '../../model/ip.ts';
import type { Logger } from '../../obs/log.ts';
import type { ProxyMetrics } from '../../obs/proxy-metrics.ts';
import { AddressWatch, servingNodePorts } from '../address-watch.ts';
import type { Backend, SyncRequest, SyncResult } from '../backend.ts';
import { Repairs } from '../repairs.ts';
import { TableWatch } from '../table-watch.ts';
import { Placing, type Served, type Step } from './placing.ts';
import type { PortalElement } from './portals/elements.ts';
import { portalTable } from './portals/layout.ts';
import { nodeElements } from './portals/node-elements.ts';
import { Portals } from './portals/portals.ts';
import type { ProxySockets } from './proxy-sockets.ts';
import { Retry } from './retry.ts';
import type { UserspaceSettings } from './settings.ts';

export interface PortalBackendOptions {
  readonly settings: UserspaceSettings;
  readonly kernel: KernelInterfaces;
  readonly sockets: ProxySockets;
  readonly claim: NodeForwarder['claim'];
  readonly metrics: Pick<ProxyMetrics, 'repairs'>;
  readonly logger: Logger;
  readonly clock: Clock;
  readonly requestFullSync: () => void;
  readonly onClose: () => void;
}

/** Userspace mode where packets can be captured: a table of ours sends them to proxy sockets. */
export class PortalBackend implements Backend {
  readonly family: Family;
  readonly usesServiceCIDRs = true;
  readonly #options: PortalBackendOptions;
  readonly #portals: Portals;
  readonly #placing: Placing;
  readonly #served = new Map<string, Served>();
  readonly #answerers = new Map<string, Set<string>>();
  readonly #repairs: Repairs;
  readonly #retry: Retry;
  #nodeElements: readonly PortalElement[] = [];
  #watches: { close(): void }[] = [];

  constructor(options: PortalBackendOptions) {
    const { settings, kernel, sockets, claim, metrics, logger, clock, requestFullSync } = options;
    this.#options = options;
    this.family = settings.family;
    this.#portals = new Portals(settings, kernel.nft);
    this.#placing = new Placing({ settings, sockets, claim });
    this.#retry = new Retry(clock, settings.retryMs, requestFullSync);
    this.#repairs = new Repairs({
      family: this.family,
      subject: 'table kube-proxy-userspace',
      clock,
      logger,
      repairs: metrics.repairs,
      repair: requestFullSync,
    });
  }

  readonly flows = { answerers: (key: string): ReadonlySet<string> => this.#answerersOf(key) };

  async sync(request: SyncRequest): Promise<SyncResult> {
    if (this.#watches.length === 0) this.#watches = this.#startWatches();
    const { plans, changed } = request;
    const troubled = [...this.#served].filter(([, { problems }]) => problems.length > 0).map(([key]) => key);
    const known = [...this.#served.keys(), ...this.#placing.keys()];
    const keys = changed === 'all' ? [...known, ...plans.keys()] : [...changed, ...troubled];
    const sorted = [...new Set(keys)].sort();
    // What is given up is free for others in the same sync, whatever their order.
    for (const key of sorted) this.#placing.giveUp(key, plans.get(key));
    const addresses = await this.#options.kernel.addresses.list();
    const steps = new Map<string, Step>();
    for (const key of sorted) {
      steps.set(key, await this.#placing.step(key, plans.get(key), this.#served.get(key), addresses));
    }
    const node = nodeElements(request.serviceCIDRs, addresses, this.#options.settings);
    await this.#write(steps, node, changed === 'all');
    this.#settle(steps);
    const refused = this.#refused();
    // Ports that were closed only now are free for those that found none.
    const hasFreed = [...steps.values()].some(({ closing }) => closing.length > 0);
    if (hasFreed && refused.length > 0) this.#options.requestFullSync();
    return { refused };
  }

  /** What is served now, to compare with. */
  served(): ReadonlyMap<string, Served> {
    return new Map(this.#served);
  }

  async close(): Promise<void> {
    this.#retry.cancel();
    this.#repairs.close();
    for (const watch of this.#watches) watch.close();
    this.#placing.close();
    this.#options.onClose();
  }

  #startWatches(): { close(): void }[] {
    const { settings, kernel, logger, clock, requestFullSync } = this.#options;
    const { family } = this;
    return [
      new TableWatch({
        client: kernel.nft,
        table: portalTable(family),
        clock,
        logger,
        onChange: (change) => this.#repairs.changed(change),
      }),
      new AddressWatch({
        addresses: kernel.addresses,
        relevant: servingNodePorts(settings.nodePortAddresses),
        clock,
        logger,
        onChange: requestFullSync,
      }),
    ];
  }

  async #write(
    steps: ReadonlyMap<string, Step>,
    node: readonly PortalElement[],
    isFull: boolean,
  ): Promise<void> {
    try {
      if (isFull || !(await this.#change(steps, node))) await this.#replace(steps, node);
      this.#nodeElements = node;
    } catch (error) {
      // The old rules are still there, and lead to the old sockets.
      this.#closeNew(steps.values());
      throw error;
    }
  }

  /** False when the table is not what it was: somebody changed it a moment ago. */
  async #change(steps: ReadonlyMap<string, Step>, node: readonly PortalElement[]): Promise<boolean> {
    const removed = [...steps.values()].flatMap((step) => step.removed);
    const added = [...steps.values()].flatMap((step) => step.next?.elements ?? []);
    try {
      await this.#portals.change([...this.#nodeElements, ...removed], [...node, ...added]);
      return true;
    } catch (error) {
      if (!isNotFound(error) && !isAlreadyExists(error)) throw error;
      return false;
    }
  }

  async #replace(steps: ReadonlyMap<string, Step>, node: readonly PortalElement[]): Promise<void> {
    const next = new Map<string, readonly PortalElement[]>();
    for (const [key, { elements }] of this.#served) next.set(key, elements);
    for (const [key, step] of steps) next.set(key, step.next?.elements ?? []);
    await this.#portals.replace([...node, ...[...next.values()].flat()]);
  }

  #closeNew(steps: Iterable<Step>): void {
    const known = new Set([...this.#served.values()].flatMap(({ sockets }) => [...sockets.values()]));
    for (const { next } of steps) {
      for (const socket of next?.sockets.values() ?? []) {
        if (!known.has(socket)) this.#options.sockets.close(socket);
      }
    }
  }

  /** The rules are in effect: what they no longer lead to is closed. */
  #settle(steps: ReadonlyMap<string, Step>): void {
    for (const [key, { next, closing }] of steps) {
      if (next) this.#served.set(key, next);
      else this.#served.delete(key);
      for (const socket of closing) this.#options.sockets.close(socket);
      const answerers = this.#answerersOf(key);
      answerers.clear();
      for (const { ip, port } of next?.sockets.values() ?? []) answerers.add(joinHostPort(ip, port));
      if (!next) this.#answerers.delete(key);
    }
  }

  #answerersOf(key: string): Set<string> {
    const known = this.#answerers.get(key) ?? new Set<string>();
    this.#answerers.set(key, known);
    return known;
  }

  #refused(): { key: string; error: Error }[] {
    const refused: { key: string; error: Error }[] = [];
    for (const [key, { plan, problems }] of this.#served) {
      const [error] = problems;
      if (!error) continue;
      refused.push({ key, error });
      if (plan.port.protocol !== 'SCTP') this.#retry.schedule();
    }
    return refused;
  }
}
