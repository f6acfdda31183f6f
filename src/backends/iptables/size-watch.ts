import type { TableSize, TableSizes } from '../../kernel/xtables/table-size.ts';
import type { Clock, Timer } from '../../lib/clock.ts';
import type { Family } from '../../model/ip.ts';
import type { Logger } from '../../obs/log.ts';

export interface SizeWatchOptions {
  readonly family: Family;
  readonly sizes: TableSizes;
  readonly clock: Clock;
  readonly logger: Logger;
  /** A table has changed, and not by us. */
  readonly onSuspicion: () => void;
}

const tables = ['nat', 'filter', 'mangle'] as const;
const pollMs = 250;

/**
 * Looks at the sizes of the tables four times a second where iptables stands on x_tables, which tells nobody of changes. A
 * rule replaced by one of the same size goes unseen.
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

  /** What others did until now must not be taken for what this program of ours will do. */
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

  /** Notes the sizes; true when one differs from what was noted before. */
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
