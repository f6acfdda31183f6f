import type { TableSize, TableSizes } from '../../kernel/xtables/table-size.ts';
import type { Clock, Timer } from '../../lib/clock.ts';
import type { Family } from '../../model/ip.ts';
import type { Logger } from '../../obs/log.ts';

export interface SizeWatchOptions {
  readonly family: Family;
  readonly sizes: TableSizes;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Called when another program changed a table. */
  readonly onSuspicion: () => void;
}

const tables = ['nat', 'filter', 'mangle'] as const;
const pollMs = 250;

/**
 * Polls the table sizes four times a second where iptables uses x_tables, which reports no changes. Misses a rule
 * replaced by one of the same size.
 */
export class SizeWatch {
  readonly #options: SizeWatchOptions;
  readonly #seen = new Map<string, TableSize>();
  #timer: Timer | undefined;
  #writers = 0;
  #hasFailed = false;

  constructor(options: SizeWatchOptions) {
    this.#options = options;
    this.#rebase();
    this.#schedule();
  }

  close(): void {
    this.#timer?.cancel();
    this.#options.sizes.close();
  }

  /** Changes by other programs until now must not be mistaken for those of our program. */
  writerStarted(): void {
    if (this.#writers === 0 && this.#rebase()) this.#options.onSuspicion();
    this.#writers++;
  }

  writerEnded(): void {
    this.#writers--;
    if (this.#writers === 0) this.#rebase();
  }

  #schedule(): void {
    this.#timer = this.#options.clock.setTimeout(() => {
      if (this.#writers === 0 && this.#rebase()) this.#options.onSuspicion();
      this.#schedule();
    }, pollMs);
  }

  /** Stores the sizes; returns true when one has changed. */
  #rebase(): boolean {
    let hasChanged = false;
    for (const table of tables) {
      const now = this.#read(table);
      const before = this.#seen.get(table);
      if (!now) continue;
      if (before && (before.entries !== now.entries || before.bytes !== now.bytes)) hasChanged = true;
      this.#seen.set(table, now);
    }
    return hasChanged;
  }

  #read(table: string): TableSize | undefined {
    const { sizes, logger, family } = this.#options;
    try {
      return sizes.read(table);
    } catch (error) {
      if (!this.#hasFailed) logger.error(error, 'Cannot watch a table', { ipFamily: family, table });
      this.#hasFailed = true;
      return undefined;
    }
  }
}
