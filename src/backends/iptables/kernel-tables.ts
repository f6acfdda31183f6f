import { CommandError } from '../../kernel/iptables/command-error.ts';
import type { Commands } from '../../kernel/iptables/commands.ts';
import type { Flavour } from '../../kernel/iptables/table-reader.ts';
import type { Logger } from '../../obs/log.ts';
import { ensureJumps, findJumps, insertionsOf } from '../jumps.ts';
import type { PacketCounters } from './counters.ts';
import { jumpStructure } from './jumps.ts';
import { type Counters, RestoreError, type Tables } from './tables.ts';
import type { WrittenRules } from './written-rules.ts';

export interface KernelTablesOptions {
  readonly commands: Commands;
  readonly written: WrittenRules;
  /** Undefined when the kernel has no such counters. */
  readonly counters: PacketCounters | undefined;
  readonly logger: Logger;
  readonly flavour: Flavour;
}

/** iptables-nft-restore takes time quadratic in the chains of one input. */
const nftChainsPerRestore = 2_000;

const noCounters: Counters = { invalidDropped: false, localhostAccepted: false };

/** The tables of one family in the kernel of this network namespace, through the iptables programs. */
export class KernelTables implements Tables {
  readonly chainsPerRestore: number;
  readonly #options: KernelTablesOptions;
  /** Restore input for missing jumps; `unsure` after a restore that failed when it may have made them. */
  #missingJumps: readonly string[] | 'unsure' = [];

  constructor(options: KernelTablesOptions) {
    this.#options = options;
    this.chainsPerRestore = options.flavour === 'nft' ? nftChainsPerRestore : Number.POSITIVE_INFINITY;
  }

  async ensureJumps(): Promise<ReadonlySet<string>> {
    const { chains, missing } = await findJumps(this.#options.commands, jumpStructure);
    if (missing.length === 0) this.#noteJumps();
    else this.#missingJumps = insertionsOf(missing);
    return chains.get('nat') ?? new Set();
  }

  async ensureCounters(): Promise<Counters> {
    const { counters, logger } = this.#options;
    return (await counters?.ensure(logger)) ?? noCounters;
  }

  async restore(input: Iterable<string>): Promise<void> {
    const { commands, written } = this.#options;
    const jumps = this.#missingJumps === 'unsure' ? await this.#makeJumps() : this.#missingJumps;
    try {
      await written.during(input, (counted) => commands.restore(joined(jumps, counted)));
      if (jumps.length > 0) this.#noteJumps();
    } catch (error) {
      const failure = restoreError(error);
      if (jumps.length === 0) throw failure;
      this.#missingJumps = 'unsure';
      // Jumps or rules were refused, perhaps after some jumps were made. Alone, each gets its own treatment.
      if (failure instanceof RestoreError) return this.restore(input);
      throw failure;
    }
  }

  async #makeJumps(): Promise<[]> {
    const { errors } = await ensureJumps(this.#options.commands, jumpStructure);
    if (errors[0]) throw errors[0];
    this.#noteJumps();
    return [];
  }

  #noteJumps(): void {
    this.#missingJumps = [];
    this.#options.written.expectJumps();
  }
}

function* joined(first: Iterable<string>, second: Iterable<string>): Generator<string> {
  yield* first;
  yield* second;
}

/** The three ways in which versions of iptables-restore name the line they failed at. */
const linePattern = /\bline:? (\d+)\b/;

/** Turns a refused input into RestoreError; returns any other error unchanged. */
function restoreError(error: unknown): unknown {
  if (!(error instanceof CommandError) || error.status === undefined) return error;
  const line = linePattern.exec(error.output)?.[1];
  if (error.isResourceProblem && line === undefined) return error;
  const refusal = new RestoreError(error.message, line === undefined ? undefined : Number(line));
  refusal.cause = error;
  return refusal;
}
