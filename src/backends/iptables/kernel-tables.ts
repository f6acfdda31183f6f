import { CommandError } from '../../kernel/iptables/command-error.ts';
import type { Commands } from '../../kernel/iptables/commands.ts';
import type { Flavour } from '../../kernel/iptables/table-reader.ts';
import type { Logger } from '../../obs/log.ts';
import { ensureJumps } from '../jumps.ts';
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

  constructor(options: KernelTablesOptions) {
    this.#options = options;
    this.chainsPerRestore = options.flavour === 'nft' ? nftChainsPerRestore : Number.POSITIVE_INFINITY;
  }

  async ensureJumps(): Promise<ReadonlySet<string>> {
    const { errors, chains } = await ensureJumps(this.#options.commands, jumpStructure);
    if (errors[0]) throw errors[0];
    this.#options.written.expectJumps();
    return chains.get('nat') ?? new Set();
  }

  async ensureCounters(): Promise<Counters> {
    const { counters, logger } = this.#options;
    return (await counters?.ensure(logger)) ?? noCounters;
  }

  async restore(input: Iterable<string>): Promise<void> {
    const { commands, written } = this.#options;
    try {
      await written.during(input, (counted) => commands.restore(counted));
    } catch (error) {
      throw restoreError(error);
    }
  }
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
