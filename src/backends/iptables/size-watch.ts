import type { TableSize, TableSizes } from '../../kernel/xtables/table-size.ts';
import type { Clock, Timer } from '../../lib/clock.ts';
import type { Family } from '../../model/ip.ts';
import type { Logger } from '../../obs/log.ts';
import type { Growth } from './written-rules.ts';

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
 *
 * A program that waits for the lock of iptables gets it when our program ends, and may be done before we notice that
 * end. So what grew while our program ran has to be explained by what it wrote.
 */
export class SizeWatch {
  readonly #options: SizeWatchOptions;
  readonly #seen = new Map<string, TableSize>();
  /** Entries by which tables grew while programs of ours ran, and that nobody has explained. */
  readonly #unexplained = new Map<string, number>();
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
    if (this.#writers > 0) return;
    const before = new Map(this.#seen);
    this.#rebase();
    for (const [table, { entries }] of this.#seen) {
      const known = before.get(table);
      if (known) this.#grew(table, entries - known.entries);
    }
  }

  /** What our programs wrote made the tables grow so. */
  explained(growth: Growth): void {
    if (growth === 'unknown') this.#unexplained.clear();
    else for (const [table, entries] of growth) this.#grew(table, -entries);
  }

  #grew(table: string, entries: number): void {
    const sum = (this.#unexplained.get(table) ?? 0) + entries;
    if (sum === 0) this.#unexplained.delete(table);
    else this.#unexplained.set(table, sum);
  }

  #schedule(): void {
    this.#timer = this.#options.clock.setTimeout(() => {
      if (this.#writers === 0) this.#look();
      this.#schedule();
    }, pollMs);
  }

  #look(): void {
    const hasChanged = this.#rebase();
    if (!hasChanged && this.#unexplained.size === 0) return;
    this.#unexplained.clear();
    this.#options.onSuspicion();
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
