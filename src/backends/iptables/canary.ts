import type { AnyTable, Commands } from '../../kernel/iptables/commands.ts';
import type { Clock, Timer } from '../../lib/clock.ts';
import type { Logger } from '../../obs/log.ts';

export const canaryChain = 'KUBE-PROXY-CANARY';
/** In the order in which they are made. */
const canaryTables: readonly AnyTable[] = ['mangle', 'nat', 'filter'];

export interface CanaryOptions {
  readonly commands: Commands;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Milliseconds between two looks. */
  readonly interval: number;
  /** Called for every chain that is in place. */
  readonly onPlanted: (table: AnyTable, chain: string) => void;
  /** Called when another program has flushed all rules. */
  readonly onLost: () => void;
}

const pollMs = 100;
const pollLimitMs = 5_000;

/** An empty chain in every table. When it is gone, another program has flushed all rules. */
export class Canary {
  readonly #options: CanaryOptions;
  #wait: { readonly timer: Timer; readonly wake: () => void } | undefined;
  #isClosed = false;
  #loop: Promise<void> | undefined;

  constructor(options: CanaryOptions) {
    this.#options = options;
  }

  /** Begins to watch; returns at once. */
  start(): void {
    this.#loop ??= this.#watch();
  }

  /** Creates the missing chains; returns false when that failed. */
  async plant(): Promise<boolean> {
    const { commands, logger, onPlanted } = this.#options;
    try {
      await commands.createEmptyChain(canaryTables, canaryChain);
      for (const table of canaryTables) onPlanted(table, canaryChain);
      return true;
    } catch (error) {
      logger.error(error, 'Could not set up the canary chain', {
        ipFamily: commands.family,
        chain: canaryChain,
      });
      return false;
    }
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#wait?.timer.cancel();
    this.#wait?.wake();
    await this.#loop;
  }

  async #watch(): Promise<void> {
    const { logger, commands, interval, onLost } = this.#options;
    while (!this.#isClosed) {
      if (!(await this.plant())) {
        await this.#sleep(interval);
        continue;
      }
      do await this.#sleep(interval);
      while (!this.#isClosed && (await this.#isIn('mangle')));
      if (this.#isClosed) return;
      if (!(await this.#isGoneEverywhere())) {
        logger.error(undefined, 'Inconsistent iptables state detected', { ipFamily: commands.family });
      }
      if (!this.#isClosed) onLost();
    }
  }

  /**
   * Waits until the chain is gone from all tables: a program that flushes goes from table to table, and a repair in
   * between would be in vain.
   */
  async #isGoneEverywhere(): Promise<boolean> {
    const { clock } = this.#options;
    const end = clock.monotonic() + pollLimitMs;
    for (;;) {
      if (!(await this.#isIn('nat')) && !(await this.#isIn('filter'))) return true;
      if (this.#isClosed || clock.monotonic() + pollMs > end) return false;
      await this.#sleep(pollMs);
    }
  }

  /**
   * Whether the chain exists. A failed check, for example while another program holds the lock, does not count as
   * gone.
   */
  async #isIn(table: AnyTable): Promise<boolean> {
    const { commands, logger } = this.#options;
    try {
      return await commands.chainExists(table, canaryChain);
    } catch (error) {
      logger.error(error, 'Could not look for the canary chain', { ipFamily: commands.family, table });
      return true;
    }
  }

  #sleep(ms: number): Promise<void> {
    if (this.#isClosed) return Promise.resolve();
    return new Promise((resolve) => {
      const timer = this.#options.clock.setTimeout(resolve, ms);
      this.#wait = { timer, wake: resolve };
    });
  }
}
