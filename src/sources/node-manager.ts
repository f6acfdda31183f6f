import type { Clock } from '../lib/clock.ts';
import { sleep } from '../lib/sleep.ts';
import { zoneOf } from '../model/node-eligibility.ts';
import { nodeIPs } from '../model/node-ips.ts';
import type { NodeObject, ResourceName, Resources } from '../model/objects.ts';
import { sameStrings } from '../model/same-strings.ts';
import type { Logger } from '../obs/log.ts';
import type { ObjectHandler } from './source.ts';

const pollMs = 1_000;
const nodePolls = 30;
const podCIDRPolls = 300;

export interface NodeManagerOptions {
  readonly nodeName: string;
  /** In detectLocalMode NodeCIDR the program needs `spec.podCIDRs` to start and exits when they change. */
  readonly needsPodCIDRs: boolean;
  /**
   * Whether to wait for a Node or addresses that the first list lacks. False for manifests, whose first list is
   * complete. Default true.
   */
  readonly waits?: boolean;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** What the program was started with; it exits when this changes. */
export interface NodeStart {
  /** Canonical, at most one per family, the primary first; empty when unknown. */
  readonly nodeIPs: readonly string[];
  readonly podCIDRs: readonly string[];
}

export interface NodeReactions {
  /** The program must exit with code 1, so that its supervisor restarts it with the new values. Called once. */
  onFatal(reason: string): void;
  /** The zone label was added, changed or removed (undefined). */
  onZone(zone: string | undefined): void;
}

/**
 * Follows the Node that this program runs on. Start it on a source's `nodes`, await `waitForNode()`, build what depends
 * on the node, then call `react()`.
 */
export class NodeManager implements ObjectHandler {
  readonly #options: NodeManagerOptions;
  readonly #stop = new AbortController();
  readonly #firstList = Promise.withResolvers<void>();
  #node: NodeObject | undefined;
  /** Whether the node existed since the start: its absence then means that it was deleted. */
  #known = false;
  #start: NodeStart | undefined;
  #reactions: NodeReactions | undefined;
  #zone: string | undefined;
  #needsPodCIDRs: boolean;

  constructor(options: NodeManagerOptions) {
    this.#options = options;
    this.#needsPodCIDRs = options.needsPodCIDRs;
  }

  /** The node as last delivered. */
  get node(): NodeObject | undefined {
    return this.#node;
  }

  upsert<R extends ResourceName>(resource: R, object: Resources[R]): void {
    const node = this.#own(resource, object);
    if (!node) return;
    this.#node = node;
    this.#known = true;
    this.#compare();
  }

  remove<R extends ResourceName>(resource: R, object: Resources[R]): void {
    if (!this.#own(resource, object)) return;
    this.#node = undefined;
    this.#compare();
  }

  synced(resource: ResourceName): void {
    if (resource === 'nodes') this.#firstList.resolve();
  }

  /**
   * Waits for the first list without limit, then up to 30 s for the node's addresses, and resolves without them.
   * Rejects when pod CIDRs are needed and do not arrive within 300 s.
   */
  async waitForNode(): Promise<NodeStart> {
    await this.#firstList.promise;
    const hasIPs = await this.#poll(() => this.#nodeIPs().length > 0, nodePolls);
    const hasPodCIDRs = () => (this.#node?.podCIDRs.length ?? 0) > 0;
    if (this.#needsPodCIDRs && !(await this.#poll(hasPodCIDRs, podCIDRPolls))) {
      throw new Error(this.#missingPodCIDRs());
    }
    if (!hasIPs && this.#nodeIPs().length === 0) this.#reportMissing();
    const start = { nodeIPs: this.#nodeIPs(), podCIDRs: this.#node?.podCIDRs ?? [] };
    this.#start = start;
    this.#known = this.#node !== undefined;
    return start;
  }

  /**
   * Begins or ends to need `spec.podCIDRs`, and returns what the program works with from then on. Throws when it needs
   * them and the node has none.
   */
  setNeedsPodCIDRs(needs: boolean): NodeStart {
    const start = this.#start;
    if (!start) throw new Error('setNeedsPodCIDRs() needs the outcome of waitForNode()');
    if (needs === this.#needsPodCIDRs) return start;
    const podCIDRs = this.#node?.podCIDRs ?? [];
    if (needs && podCIDRs.length === 0) throw new Error(this.#lackingPodCIDRs());
    this.#needsPodCIDRs = needs;
    this.#start = { ...start, podCIDRs };
    return this.#start;
  }

  /** Acts on changes from now on, including those since `waitForNode()` resolved. */
  react(reactions: NodeReactions): void {
    if (!this.#start) throw new Error('react() needs the outcome of waitForNode()');
    this.#reactions = reactions;
    this.#compare();
  }

  /** Ends the reactions and a wait, which then rejects. */
  stop(): void {
    this.#stop.abort();
    this.#firstList.resolve();
    this.#reactions = undefined;
  }

  #own<R extends ResourceName>(resource: R, object: Resources[R]): NodeObject | undefined {
    if (resource !== 'nodes') return undefined;
    const node = object as NodeObject;
    return node.name === this.#options.nodeName ? node : undefined;
  }

  #nodeIPs(): string[] {
    return this.#node ? nodeIPs(this.#node) : [];
  }

  /** Checks the condition now and every second; returns whether it held in time. */
  async #poll(holds: () => boolean, polls: number): Promise<boolean> {
    const rounds = this.#options.waits === false ? 0 : polls;
    for (let i = 0; ; i++) {
      if (this.#stop.signal.aborted) throw new Error(`stopped waiting for node "${this.#options.nodeName}"`);
      if (holds()) return true;
      if (i >= rounds) return false;
      await sleep(this.#options.clock, pollMs, this.#stop.signal);
    }
  }

  #missingPodCIDRs(): string {
    const { nodeName, waits } = this.#options;
    if (waits === false) return this.#lackingPodCIDRs();
    if (!this.#node) return `timeout waiting for node "${nodeName}" to exist`;
    return `timeout waiting for PodCIDR allocation on node "${nodeName}"`;
  }

  #lackingPodCIDRs(): string {
    return `node "${this.#options.nodeName}" has no spec.podCIDRs, which detectLocalMode NodeCIDR needs`;
  }

  #reportMissing(): void {
    const { logger, nodeName } = this.#options;
    const error = new Error(
      this.#node ? `node "${nodeName}" has no IP address` : `node "${nodeName}" not found`,
    );
    logger.error(error, 'Starting without the addresses of the node', { node: nodeName });
  }

  /** Calls the reactions for differences from the start. */
  #compare(): void {
    const reactions = this.#reactions;
    if (!reactions) return;
    const reason = this.#reasonToExit();
    if (reason !== undefined) {
      this.#reactions = undefined;
      reactions.onFatal(reason);
      return;
    }
    const zone = zoneOf(this.#node);
    if (zone === this.#zone) return;
    this.#zone = zone;
    reactions.onZone(zone);
  }

  #reasonToExit(): string | undefined {
    const start = this.#start;
    if (!start) return undefined;
    const { nodeName } = this.#options;
    if (!this.#node) return this.#known ? `node "${nodeName}" was deleted` : undefined;
    const podCIDRs = this.#node.podCIDRs;
    if (this.#needsPodCIDRs && !sameStrings(podCIDRs, start.podCIDRs)) {
      return `pod CIDRs of node "${nodeName}" changed from ${show(start.podCIDRs)} to ${show(podCIDRs)}`;
    }
    const ips = this.#nodeIPs();
    if (!sameStrings(ips, start.nodeIPs)) {
      return `IP addresses of node "${nodeName}" changed from ${show(start.nodeIPs)} to ${show(ips)}`;
    }
    return undefined;
  }
}

function show(list: readonly string[]): string {
  return `[${list.join(', ')}]`;
}
