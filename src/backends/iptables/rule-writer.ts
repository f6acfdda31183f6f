import type { Clock } from '../../lib/clock.ts';
import type { Logger } from '../../obs/log.ts';
import type { ProxyMetrics } from '../../obs/proxy-metrics.ts';
import type { Wanted, Written } from '../driver.ts';
import type { Variant } from './compile.ts';
import { filterHead, natHead } from './fixed-rules.ts';
import { isServiceChain } from './names.ts';
import { type NodeLines, nodeLines } from './node-lines.ts';
import { type ChainSelection, inParts, RestoreInput, type StaleChain } from './restore-input.ts';
import { Ruleset } from './ruleset.ts';
import type { IptablesSettings } from './settings.ts';
import { type Counters, RestoreError, type Tables } from './tables.ts';

export interface RuleWriterOptions {
  readonly settings: IptablesSettings;
  readonly tables: Tables;
  readonly metrics: Pick<
    ProxyMetrics,
    'iptablesRestoreFailures' | 'iptablesPartialRestoreFailures' | 'iptablesRulesTotal' | 'iptablesRulesLast'
  >;
  readonly logger: Logger;
  readonly clock: Clock;
}

/** More endpoints than this make a large cluster: rules are kept short, and clearing up waits. */
const largeClusterEndpoints = 1000;

/** iptables-restore refused its input. */
export class RefusedInput extends Error {
  readonly input: RestoreInput;
  /** The line of the input that it complained about, counted from 1. */
  readonly line: number | undefined;

  constructor(cause: RestoreError, input: RestoreInput) {
    super(cause.message, { cause });
    this.name = 'RefusedInput';
    this.input = input;
    this.line = cause.line;
  }
}

/** The wanted rules of one family, the chains that are left behind, and how both get into the kernel. */
export class RuleWriter {
  readonly ruleset: Ruleset;
  readonly #options: RuleWriterOptions;
  readonly #label: { readonly ipFamily: string };
  #counters: Counters = { invalidDropped: false, localhostAccepted: false };
  #isLarge = false;
  #lastStaleCheck = Number.NEGATIVE_INFINITY;

  constructor(options: RuleWriterOptions) {
    this.#options = options;
    this.#label = { ipFamily: options.settings.family };
    this.ruleset = new Ruleset(options.settings, options.clock);
  }

  get isLarge(): boolean {
    return this.#isLarge;
  }

  get variant(): Variant {
    return { comments: !this.#isLarge, countLocalhost: this.#counters.localhostAccepted };
  }

  /** Begins a sync; returns the lines that depend on the node. */
  begin({ totalEndpoints, addresses }: Wanted): NodeLines {
    const { settings, logger } = this.#options;
    this.#isLarge = totalEndpoints > largeClusterEndpoints;
    return nodeLines(settings, this.#counters, addresses, logger);
  }

  /** Makes sure of jumps and counters; rejects when a jump cannot be made. Resolves to all service chains. */
  async ensureStructure(): Promise<readonly string[]> {
    const { tables } = this.#options;
    const chains = await tables.ensureJumps();
    this.#counters = await tables.ensureCounters();
    return [...chains].filter(isServiceChain);
  }

  /** Writes the selected chains. Rejects with RefusedInput, or with any error that left the input unjudged. */
  async restore(selection: ChainSelection, node: NodeLines): Promise<void> {
    const { settings, tables, metrics, clock, logger } = this.#options;
    const inputOf = (part: ChainSelection) => new RestoreInput(settings, this.ruleset.services, node, part);
    this.#reportRules(inputOf(selection), node);
    const start = clock.monotonic();
    for (const input of inParts(selection, tables.chainsPerRestore).map(inputOf)) {
      if (input.isEmpty) continue;
      try {
        await tables.restore(input);
      } catch (error) {
        metrics.iptablesRestoreFailures.inc({ ip_family: settings.family });
        throw error instanceof RestoreError ? new RefusedInput(error, input) : error;
      }
    }
    logger.v(4).info('Restored', { ...this.#label, ms: Math.round(clock.monotonic() - start) });
  }

  written(node: NodeLines): Written<NodeLines> {
    return { belief: node, failures: this.ruleset.failures };
  }

  /** Whether stale chains may be removed in this sync; in a large cluster, that waits for the sync period. */
  get mayClear(): boolean {
    const { clock, settings } = this.#options;
    return !this.#isLarge || clock.monotonic() - this.#lastStaleCheck > settings.syncPeriod;
  }

  staleChains(kept: ReadonlySet<string> = new Set()): StaleChain[] {
    return [...this.ruleset.stale].sort().map((name) => ({ name, keep: kept.has(name) }));
  }

  noteCleared(): void {
    this.ruleset.stale.clear();
    this.#lastStaleCheck = this.#options.clock.monotonic();
  }

  #reportRules(input: RestoreInput, node: NodeLines): void {
    const { settings, metrics } = this.#options;
    const { services } = this.ruleset;
    const written = input.countRules();
    const total = {
      filter: services.filterRules + filterHead(settings).length + node.filterTail.length,
      nat: services.natRules + natHead(settings).length + node.natTail.length,
    };
    for (const table of ['filter', 'nat'] as const) {
      const labels = { table, ip_family: settings.family };
      metrics.iptablesRulesTotal.set(total[table], labels);
      metrics.iptablesRulesLast.set(written[table], labels);
    }
  }
}
