import type { FullWrite, Remedy, Wanted, Written } from '../driver.ts';
import type { OwnChains } from './compile.ts';
import { type IptablesOptions, isBusy } from './driver.ts';
import { filterChains, natChains } from './fixed-rules.ts';
import type { NodeLines } from './node-lines.ts';
import { RefusedInput, type RuleWriter } from './rule-writer.ts';
import { findCulprits } from './trial.ts';

/** How often a full sync is tried while other programs keep the lock; each attempt waits for it. */
const lockAttempts = 3;

/** What one full sync writes. */
interface Everything {
  readonly node: NodeLines;
  /** The chains of service ports that are not left out. */
  readonly own: Map<string, OwnChains>;
  readonly isClearing: boolean;
}

/** Makes sure of chains, jumps and counters, and writes every chain. */
export class FullRulesWrite implements FullWrite<NodeLines> {
  readonly #options: IptablesOptions;
  readonly #writer: RuleWriter;
  readonly #wanted: Wanted;
  readonly #onWritten: () => void;
  /** Stale chains that are emptied but not removed, because rules of other programs jump to them. */
  readonly #kept = new Set<string>();
  #everything: Everything | undefined;
  #busyAttempts = 0;

  constructor(options: IptablesOptions, writer: RuleWriter, wanted: Wanted, onWritten: () => void) {
    this.#options = options;
    this.#writer = writer;
    this.#wanted = wanted;
    this.#onWritten = onWritten;
  }

  async attempt(leftOut: ReadonlyMap<string, Error>): Promise<Written<NodeLines>> {
    const writer = this.#writer;
    this.#everything ??= await this.#prepare();
    const { node, own, isClearing } = this.#everything;
    for (const key of leftOut.keys()) {
      writer.ruleset.drop(key);
      own.delete(key);
    }
    const filter = new Set(filterChains(this.#options.settings));
    const stale = isClearing ? writer.staleChains(this.#kept) : [];
    await writer.restore({ filter, nat: new Set(natChains), own, stale }, node);
    if (isClearing) writer.noteCleared();
    this.#onWritten();
    return writer.written(node);
  }

  /** A search for what was refused may find the lock taken, like any attempt; the next one begins it again. */
  async remedy(error: unknown): Promise<Remedy> {
    if (isBusy(error)) return this.#waitForLock(error);
    if (!(error instanceof RefusedInput)) return undefined;
    try {
      return await this.#leaveOut(error);
    } catch (obstacle) {
      if (isBusy(obstacle)) return this.#waitForLock(obstacle);
      throw obstacle;
    }
  }

  /** Finds the service ports that were refused, or removals of chains that rules of other programs jump to. */
  async #leaveOut(error: RefusedInput): Promise<Remedy> {
    const { settings, tables } = this.#options;
    const { input, line } = error;
    const owner = line === undefined ? undefined : input.ownerOf(line);
    if (owner?.kind === 'removal') return this.#keep([owner.chain], error);
    const culprits = await findCulprits(this.#writer.ruleset.services, owner?.key, settings, tables);
    if (culprits.size > 0) return culprits;
    return input.removals.length > 0 ? this.#keep(input.removals, error) : undefined;
  }

  async #prepare(): Promise<Everything> {
    const writer = this.#writer;
    const found = await writer.ensureStructure();
    const node = writer.begin(this.#wanted);
    const own = await writer.ruleset.replace(this.#wanted.plans, writer.variant);
    writer.ruleset.learn(found, own);
    return { node, own, isClearing: writer.mayClear };
  }

  #waitForLock(error: unknown): Remedy {
    if (++this.#busyAttempts === lockAttempts) return undefined;
    const { settings, logger } = this.#options;
    logger.error(error, 'iptables is busy; syncing again', { ipFamily: settings.family });
    return 'again';
  }

  #keep(chains: readonly string[], error: Error): Remedy {
    for (const chain of chains) this.#kept.add(chain);
    const { settings, logger } = this.#options;
    const details = { ipFamily: settings.family, chains: chains.slice(0, 10).join(' ') };
    logger.error(error, 'Stale chains are used by rules of another program; emptied, not removed', details);
    return 'differently';
  }
}
