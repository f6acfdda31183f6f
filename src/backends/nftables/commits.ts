import { NftError } from '../../kernel/nft/errors.ts';
import type { Bytes } from './bytes.ts';
import type { NftablesOptions } from './driver.ts';
import type { SetName } from './layout.ts';
import type { Prepared } from './prepare.ts';
import type { SharedChainName } from './shared-chains.ts';
import type { Idle } from './structure.ts';
import { Transaction } from './transaction.ts';
import { TransactionLog } from './transaction-log.ts';

/** Commits prepared transactions of one family, logs them, and counts those that fail. */
export class Commits {
  readonly #options: NftablesOptions;
  readonly #log: TransactionLog;

  constructor(options: NftablesOptions) {
    this.#options = options;
    this.#log = new TransactionLog({ ...options, family: options.settings.family });
  }

  /** Rejects with NftError when the kernel refuses the transaction; one without operations is not sent. */
  async commit({ batch, elementOperations }: Prepared): Promise<void> {
    if (batch.operations.length === 0) return;
    const { settings, client, clock, logger, metrics } = this.#options;
    const { family } = settings;
    const start = clock.monotonic();
    this.#log.committing(batch);
    try {
      const { bytes } = await client.commit(batch);
      const ms = Math.round(clock.monotonic() - start);
      logger.v(4).info('Committed', { ipFamily: family, elements: elementOperations, bytes, ms });
    } catch (error) {
      if (isOutdated(error)) throw error;
      metrics.nftablesSyncFailures.inc({ ip_family: family });
      await this.#log.refused(batch);
      throw error;
    }
  }

  /** Whether the kernel would accept a transaction; applies nothing. */
  async isAccepted({ batch }: Prepared): Promise<boolean> {
    try {
      await this.#options.client.check(batch);
      return true;
    } catch (error) {
      if (error instanceof NftError) return false;
      throw error;
    }
  }

  /** Removes what is unused. Before kernel 6.2 a chain counts as used a moment longer: it then stays until later. */
  async removeIdle({ handlers, chains, sets }: Idle): Promise<void> {
    if (await this.removeHandlers(handlers)) await this.removeChains(chains, sets);
  }

  /** Deletes elements of `handlers` by which no frontend goes. Returns whether they are gone. */
  removeHandlers(keys: readonly Bytes[]): Promise<boolean> {
    const transaction = new Transaction(this.#options.settings.family);
    for (const key of keys) transaction.delete('handlers', key);
    return this.#cleanUp(transaction);
  }

  /** Deletes chains to which nothing leads, and sets that only they use. Returns whether they are gone. */
  removeChains(chains: readonly SharedChainName[], sets: readonly SetName[]): Promise<boolean> {
    const transaction = new Transaction(this.#options.settings.family);
    transaction.deleteChains(chains);
    for (const set of sets) transaction.deleteSet(set);
    return this.#cleanUp(transaction);
  }

  async #cleanUp(transaction: Transaction): Promise<boolean> {
    const batch = transaction.finish();
    if (batch.operations.length === 0) return true;
    const { settings, client, metrics, logger } = this.#options;
    const { family } = settings;
    try {
      this.#log.committing(batch);
      await client.commit(batch);
      return true;
    } catch (error) {
      metrics.nftablesCleanupFailures.inc({ ip_family: family });
      logger.v(2).info('Unused chains could not be removed yet', { ipFamily: family, error });
      return false;
    }
  }
}

/** Whether a commit failed because the ruleset changed since it was read. */
export function isOutdated(error: unknown): boolean {
  return error instanceof NftError && error.errno === 'ERESTART';
}
