import type { Clock } from '../../lib/clock.ts';
import type { Family } from '../../model/ip.ts';
import type { Logger } from '../../obs/log.ts';
import type { ProxyMetrics } from '../../obs/proxy-metrics.ts';
import type { Backend, SyncRequest, SyncResult } from '../backend.ts';
import { sameLines } from './chain-diff.ts';
import type { OwnChains, Variant } from './compile.ts';
import { filterChains, filterHead, natChains, natHead } from './fixed-rules.ts';
import { isServiceChain } from './names.ts';
import { type NodeLines, nodeLines } from './node-lines.ts';
import { inParts, RestoreInput, type Scope, type StaleChain } from './restore-input.ts';
import { Ruleset } from './ruleset.ts';
import type { IptablesSettings } from './settings.ts';
import { type Counters, RestoreError, type Tables } from './tables.ts';
import { findCulprits } from './trial.ts';

export type IptablesMetrics = Pick<
  ProxyMetrics,
  'iptablesRestoreFailures' | 'iptablesPartialRestoreFailures' | 'iptablesRulesTotal' | 'iptablesRulesLast'
>;

export interface IptablesOptions {
  readonly settings: IptablesSettings;
  readonly tables: Tables;
  /** Addresses on the node's interfaces at this moment. */
  readonly interfaceAddresses: () => Promise<readonly string[]>;
  readonly metrics: IptablesMetrics;
  readonly logger: Logger;
  readonly clock: Clock;
}

/** Input that iptables-restore did not take. */
interface Refusal {
  readonly error: RestoreError;
  readonly input: RestoreInput;
}

/** More endpoints than this make a large cluster: rules are kept short, and clearing up waits. */
const largeClusterEndpoints = 1000;

/** Attempts at one full sync that take the word of iptables-restore for which line it is about. */
const maxAttempts = 32;

/**
 * iptables mode in one family. A full sync makes sure of chains, jumps and counters, and writes every chain; it is what
 * `changed: 'all'` asks for, and what follows when a partial sync is refused. A partial one writes only the chains
 * that hold something else than what was written last. Chains change all at once or not at all, and nothing jumps to a
 * chain that is not there yet.
 */
export class IptablesBackend implements Backend {
  readonly family: Family;
  readonly #options: IptablesOptions;
  readonly #labels: { readonly ip_family: Family };
  readonly #ruleset: Ruleset;
  /** Service ports that the kernel does not take. */
  readonly #refused = new Map<string, Error>();
  #counters: Counters = { invalidDropped: false, localhostAccepted: false };
  /** Undefined when it is not known what the kernel holds. */
  #written: NodeLines | undefined;
  #isLarge = false;
  #lastStaleCheck = Number.NEGATIVE_INFINITY;
  /** Chains could not be listed when that was due: some may be stale that are not known yet. */
  #owesListing = false;

  constructor(options: IptablesOptions) {
    this.#options = options;
    this.family = options.settings.family;
    this.#labels = { ip_family: this.family };
    this.#ruleset = new Ruleset(options.settings, options.clock);
  }

  /** In a large cluster, writing everything anew just in case costs too much. */
  get skipsHourlySync(): boolean {
    return this.#isLarge;
  }

  async sync(request: SyncRequest): Promise<SyncResult> {
    this.#isLarge = request.totalEndpoints > largeClusterEndpoints;
    const { changed } = request;
    if (changed === 'all' || !(await this.#syncChanges(changed, request))) await this.#syncAll(request);
    const refused = [...this.#ruleset.failures, ...this.#refused];
    return { refused: refused.map(([key, error]) => ({ key, error })) };
  }

  /** Everything stays in the kernel. */
  async close(): Promise<void> {
    this.#written = undefined;
  }

  /** False when a full sync has to follow: nothing is known, or the input was refused. */
  async #syncChanges(changed: ReadonlySet<string>, { plans }: SyncRequest): Promise<boolean> {
    const before = this.#written;
    if (!before) return false;
    const { metrics, logger } = this.#options;
    const node = await nodeLines(this.#options, this.#counters);
    const changes = this.#ruleset.change(changed, plans, this.#variant);
    if (!sameLines(before.natTail, node.natTail)) changes.nat.add('KUBE-SERVICES');
    const isClearing = this.#isClearingDue && (!this.#owesListing || (await this.#findStale()));
    try {
      const refusal = await this.#restore({ ...changes, stale: isClearing ? this.#staleChains() : [] }, node);
      if (refusal) throw refusal.error;
    } catch (error) {
      metrics.iptablesPartialRestoreFailures.inc(this.#labels);
      if (!(error instanceof RestoreError)) throw error;
      logger.error(error, 'Partial sync refused; writing everything anew', this.#labels);
      return false;
    }
    for (const key of changed) this.#refused.delete(key);
    if (isClearing) this.#noteCleared();
    return true;
  }

  async #syncAll({ plans }: SyncRequest): Promise<void> {
    const { tables } = this.#options;
    this.#written = undefined;
    await tables.ensureJumps();
    this.#counters = await tables.ensureCounters();
    const node = await nodeLines(this.#options, this.#counters);
    const own = await this.#ruleset.replace(plans, this.#variant);
    const isClearing = this.#isClearingDue && (await this.#findStale(own));
    this.#refused.clear();
    const kept = new Set<string>();
    for (let attempt = 1; ; attempt++) {
      const stale = isClearing ? this.#staleChains(kept) : [];
      const refusal = await this.#restore(this.#everything(own, stale), node);
      if (!refusal) break;
      if (attempt === maxAttempts) throw refusal.error;
      await this.#setAside(refusal, own, kept);
    }
    if (isClearing) this.#noteCleared();
  }

  #everything(own: ReadonlyMap<string, OwnChains>, stale: readonly StaleChain[]): Scope {
    return { filter: new Set(filterChains(this.#options.settings)), nat: new Set(natChains), own, stale };
  }

  /** Nothing is known of the kernel when this is refused, or fails. */
  async #restore(scope: Scope, node: NodeLines): Promise<Refusal | undefined> {
    const { settings, tables, metrics, clock, logger } = this.#options;
    const inputOf = (part: Scope) => new RestoreInput(settings, this.#ruleset.services, node, part);
    this.#reportRules(inputOf(scope), node);
    const start = clock.monotonic();
    this.#written = undefined;
    for (const input of inParts(scope, tables.chainsPerRestore).map(inputOf)) {
      if (input.isEmpty) continue;
      try {
        await tables.restore(input);
      } catch (error) {
        metrics.iptablesRestoreFailures.inc(this.#labels);
        if (error instanceof RestoreError) return { error, input };
        throw error;
      }
    }
    this.#written = node;
    logger.v(4).info('Restored', { ...this.#labels, ms: Math.round(clock.monotonic() - start) });
    return undefined;
  }

  /**
   * Leaves out whatever the input was refused for: service ports, or the removal of a chain that somebody else's rule
   * jumps to. Throws the error when it is neither.
   */
  async #setAside({ error, input }: Refusal, own: Map<string, OwnChains>, kept: Set<string>): Promise<void> {
    const { settings, tables } = this.#options;
    const owner = error.line === undefined ? undefined : input.ownerOf(error.line);
    if (owner?.kind === 'removal') return this.#keep([owner.chain], error, kept);
    const culprits = await findCulprits(this.#ruleset.services, owner?.key, settings, tables);
    if (culprits.size > 0) return this.#refuse(culprits, own);
    if (input.removals.length === 0) throw error;
    this.#keep(input.removals, error, kept);
  }

  #refuse(culprits: ReadonlyMap<string, RestoreError>, own: Map<string, OwnChains>): void {
    for (const [servicePort, error] of culprits) {
      this.#refused.set(servicePort, error);
      this.#ruleset.drop(servicePort);
      own.delete(servicePort);
      const details = { ...this.#labels, servicePort };
      this.#options.logger.error(error, 'Service port refused; programming the others', details);
    }
  }

  #keep(chains: readonly string[], error: RestoreError, kept: Set<string>): void {
    for (const chain of chains) kept.add(chain);
    const text = 'Stale chains are used by rules of somebody else; emptied, not removed';
    this.#options.logger.error(error, text, { ...this.#labels, chains: chains.slice(0, 10).join(' ') });
  }

  get #variant(): Variant {
    return { comments: !this.#isLarge, countLocalhost: this.#counters.localhostAccepted };
  }

  /** In a large cluster, chains that nothing uses are not removed with every sync. */
  get #isClearingDue(): boolean {
    const { clock, settings } = this.#options;
    return !this.#isLarge || clock.monotonic() - this.#lastStaleCheck > settings.syncPeriod;
  }

  #noteCleared(): void {
    this.#ruleset.stale.clear();
    this.#lastStaleCheck = this.#options.clock.monotonic();
  }

  #staleChains(kept: ReadonlySet<string> = new Set()): StaleChain[] {
    return [...this.#ruleset.stale].sort().map((name) => ({ name, keep: kept.has(name) }));
  }

  /** Looks in the kernel for stale chains that are not known yet; false when it cannot be asked. */
  async #findStale(own?: ReadonlyMap<string, OwnChains>): Promise<boolean> {
    const found = await this.#findServiceChains();
    this.#owesListing = found === undefined;
    if (found) this.#ruleset.learn(found, own ?? (await this.#ruleset.ownChains()));
    return found !== undefined;
  }

  async #findServiceChains(): Promise<string[] | undefined> {
    const { tables, logger } = this.#options;
    try {
      return [...(await tables.chainNames('nat'))].filter(isServiceChain);
    } catch (error) {
      logger.error(error, 'Failed to list chains; stale ones stay for now', this.#labels);
      return undefined;
    }
  }

  #reportRules(input: RestoreInput, node: NodeLines): void {
    const { settings, metrics } = this.#options;
    const { services } = this.#ruleset;
    const written = input.countRules();
    const total = {
      filter: services.filterRules + filterHead(settings).length + node.filterTail.length,
      nat: services.natRules + natHead(settings).length + node.natTail.length,
    };
    for (const table of ['filter', 'nat'] as const) {
      metrics.iptablesRulesTotal.set(total[table], { table, ...this.#labels });
      metrics.iptablesRulesLast.set(written[table], { table, ...this.#labels });
    }
  }
}
