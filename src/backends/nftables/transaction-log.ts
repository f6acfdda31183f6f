import type { NftBatch } from '../../kernel/nft/batch.ts';
import type { NftClient } from '../../kernel/nft/client.ts';
import type { Clock } from '../../lib/clock.ts';
import type { Family } from '../../model/ip.ts';
import type { Logger } from '../../obs/log.ts';
import { tableText, transactionText } from './transaction-text.ts';

export interface TransactionLogOptions {
  readonly family: Family;
  readonly client: NftClient;
  readonly logger: Logger;
  readonly clock: Clock;
}

/** Verbosities, the same as upstream's. */
const everyTransaction = 9;
const failedTransaction = 4;
/** A transaction that fails once fails again and again, and its text is long. */
const quietMs = 24 * 3_600_000;
const elementsPerSet = 100;
const transactionLines = 2_000;

/** Logs transactions at high verbosity. */
export class TransactionLog {
  readonly #options: TransactionLogOptions;
  #lastFailure: number | undefined;

  constructor(options: TransactionLogOptions) {
    this.#options = options;
  }

  /** A transaction is about to be committed. */
  committing(batch: NftBatch): void {
    const { logger, family } = this.#options;
    const verbose = logger.v(everyTransaction);
    if (!verbose.enabled) return;
    verbose.info('Committing', { ipFamily: family, transaction: transactionText(batch, family) });
  }

  /** Logs a refused transaction and the table's content, at most once a day. */
  async refused(batch: NftBatch): Promise<void> {
    const { logger, family, client, clock } = this.#options;
    const verbose = logger.v(failedTransaction);
    if (!verbose.enabled) return;
    const now = clock.monotonic();
    if (this.#lastFailure !== undefined && now - this.#lastFailure < quietMs) return;
    this.#lastFailure = now;
    const table = await tableText(client, family, elementsPerSet).catch((error: unknown) => String(error));
    const transaction = firstLines(transactionText(batch, family));
    verbose.info('Transaction refused', { ipFamily: family, transaction, table });
  }
}

function firstLines(text: string): string {
  const lines = text.split('\n');
  const more = lines.length - transactionLines;
  return more > 0 ? [...lines.slice(0, transactionLines), `… and ${more} more`].join('\n') : text;
}
