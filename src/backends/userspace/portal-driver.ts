import type { NodeForwarder } from '../../forwarder/open.ts';
import { isAlreadyExists, isNotFound } from '../../kernel/nft/errors.ts';
import type { KernelInterfaces } from '../../kernel/open.ts';
import type { Clock } from '../../lib/clock.ts';
import { messageOf } from '../../lib/thrown.ts';
import { joinHostPort } from '../../model/ip.ts';
import type { Logger } from '../../obs/log.ts';
import type { ServicePlan } from '../../plan/service-plan.ts';
import type {
  Closable,
  Driver,
  EngineSignals,
  FullWrite,
  Wanted,
  WantedChanges,
  Written,
} from '../driver.ts';
import { TableWatch } from '../table-watch.ts';
import { Placing, type Served, type Step, UnsupportedProtocolError } from './placing.ts';
import type { PortalElement } from './portals/elements.ts';
import { portalTable } from './portals/layout.ts';
import { nodeElements } from './portals/node-elements.ts';
import { Portals } from './portals/portals.ts';
import type { ProxySockets } from './proxy-sockets.ts';
import { HeldReturnPorts, type ReturnPorts } from './return-ports.ts';
import type { UserspaceSettings } from './settings.ts';

export interface PortalOptions {
  readonly settings: UserspaceSettings;
  readonly kernel: Pick<KernelInterfaces, 'nft'>;
  readonly sockets: ProxySockets;
  readonly claim: NodeForwarder['claim'];
  readonly logger: Logger;
  readonly clock: Clock;
  readonly onClose: () => void;
}

type Steps = ReadonlyMap<string, Step>;

/** What the table holds for the node, besides what it holds for service ports. */
type NodeElements = readonly PortalElement[];

/**
 * Userspace mode where packets can be captured: a table of ours sends them to proxy sockets. Sockets are opened before
 * the table leads to them, and closed after it no longer does.
 */
export class PortalDriver implements Driver<NodeElements> {
  readonly subject = 'table kube-proxy-userspace';
  readonly #options: PortalOptions;
  readonly #portals: Portals;
  readonly #placing: Placing;
  #returnPorts: HeldReturnPorts | undefined;
  readonly #served = new Map<string, Served>();
  readonly #answerers = new Map<string, Set<string>>();
  #signals: EngineSignals<NodeElements> | undefined;

  constructor(options: PortalOptions) {
    const { settings, kernel } = options;
    this.#options = options;
    this.#portals = new Portals(settings, kernel.nft);
    this.#placing = new Placing(options);
  }

  readonly flows = { answerers: (key: string): ReadonlySet<string> => this.#answerersOf(key) };

  /** Whether endpoints see the address of clients that the plan does not masquerade. */
  get keepsSource(): boolean {
    return this.#options.settings.keepsSource;
  }

  /** Undefined before the first sync, and where endpoints see the address of this node. */
  get returnPorts(): ReturnPorts | undefined {
    return this.#returnPorts;
  }

  /** What is served now, to compare with. */
  get served(): ReadonlyMap<string, Served> {
    return new Map(this.#served);
  }

  writeChanges(before: NodeElements, wanted: WantedChanges): Promise<Written<NodeElements>> {
    return this.#write(wanted.changed, wanted, async (steps, node) => {
      const removed = [...steps.values()].flatMap((step) => step.removed);
      const added = [...steps.values()].flatMap((step) => step.next?.elements ?? []);
      await this.#portals.change([...before, ...removed], [...node, ...added]);
    });
  }

  writeAll(wanted: Wanted): FullWrite<NodeElements> {
    const attempt = () => {
      const keys = [...this.#served.keys(), ...this.#placing.keys(), ...wanted.plans.keys()];
      return this.#write(keys, wanted, async (steps, node) => {
        const elements = [...steps.values()].flatMap((step) => step.next?.elements ?? []);
        await this.#portals.replace([...node, ...elements]);
      });
    };
    return { attempt, remedy: async () => undefined };
  }

  prepareAlone(plan: ServicePlan): void {
    this.#portals.encode(this.#placing.elementsAlone(plan));
  }

  /** Whether another program changed the table a moment ago. */
  isRefusal(error: unknown): boolean {
    return isNotFound(error) || isAlreadyExists(error);
  }

  isTemporary(error: Error): boolean {
    return !(error instanceof UnsupportedProtocolError);
  }

  watch(signals: EngineSignals<NodeElements>): Closable[] {
    const { settings, kernel, logger, clock } = this.#options;
    this.#signals = signals;
    const table = portalTable(settings.family);
    return [new TableWatch({ client: kernel.nft, table, clock, logger, onChange: signals.changed })];
  }

  close(): void {
    this.#placing.close();
    this.#returnPorts?.release();
    this.#options.onClose();
  }

  async #write(
    keys: Iterable<string>,
    wanted: Wanted,
    commit: (steps: Steps, node: NodeElements) => Promise<void>,
  ): Promise<Written<NodeElements>> {
    const { settings } = this.#options;
    // The address may still be missing when the program starts. The sync then fails, and is tried again.
    if (settings.keepsSource) this.#returnPorts ??= this.#heldReturnPorts();
    const steps = await this.#prepare(keys, wanted);
    const node = nodeElements(wanted.serviceCIDRs, wanted.addresses, settings, this.#returnPorts);
    try {
      await commit(steps, node);
    } catch (error) {
      // The old rules are still there, and lead to the old sockets.
      this.#closeNew(steps.values());
      throw error;
    }
    this.#settle(steps);
    return { belief: node, failures: failuresOf(steps) };
  }

  #heldReturnPorts(): HeldReturnPorts {
    const { settings, claim } = this.#options;
    try {
      return new HeldReturnPorts(claim, settings.hostIP);
    } catch (error) {
      const text = `cannot hold a port for answers at ${settings.hostIP}: ${messageOf(error)}`;
      throw new Error(text, { cause: error });
    }
  }

  async #prepare(keys: Iterable<string>, { plans, addresses }: Wanted): Promise<Steps> {
    const sorted = [...new Set(keys)].sort();
    // Released ports are free for other service ports in the same sync, in any order.
    for (const key of sorted) this.#placing.giveUp(key, plans.get(key));
    const steps = new Map<string, Step>();
    try {
      for (const key of sorted) {
        steps.set(key, await this.#placing.step(key, plans.get(key), this.#served.get(key), addresses));
      }
    } catch (error) {
      this.#closeNew(steps.values());
      throw error;
    }
    return steps;
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
  #settle(steps: Steps): void {
    for (const [key, { next, closing }] of steps) {
      if (next) this.#served.set(key, next);
      else this.#served.delete(key);
      for (const socket of closing) this.#options.sockets.close(socket);
      const answerers = this.#answerersOf(key);
      answerers.clear();
      for (const { ip, port } of next?.sockets.values() ?? []) answerers.add(joinHostPort(ip, port));
      if (!next) this.#answerers.delete(key);
    }
    // Ports that were closed only now are free for those that found none.
    const hasFreed = [...steps.values()].some(({ closing }) => closing.length > 0);
    const lacksPorts = [...this.#served.values()].some(({ problems }) => problems.some(this.isTemporary));
    if (hasFreed && lacksPorts) this.#signals?.requestFullSync();
  }

  #answerersOf(key: string): Set<string> {
    const known = this.#answerers.get(key) ?? new Set<string>();
    this.#answerers.set(key, known);
    return known;
  }
}

function failuresOf(steps: Steps): Map<string, Error> {
  return new Map(
    [...steps].flatMap(([key, { next }]) => {
      const [error] = next?.problems ?? [];
      return error ? [[key, error] as const] : [];
    }),
  );
}
