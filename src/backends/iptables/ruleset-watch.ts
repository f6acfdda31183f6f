import type { Commands } from '../../kernel/iptables/commands.ts';
import type { Clock } from '../../lib/clock.ts';
import type { Logger } from '../../obs/log.ts';
import type { ForeignChange } from '../repairs.ts';
import { Canary } from './canary.ts';
import type { Changes } from './changes.ts';
import { DamageReporter } from './damage-reporter.ts';
import type { WrittenRules } from './written-rules.ts';

export interface RulesetWatchOptions {
  readonly commands: Commands;
  readonly written: WrittenRules;
  readonly changes: Pick<Changes, 'watch'>;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Milliseconds between two looks at the canary. */
  readonly interval: number;
  readonly onDamage: (change: ForeignChange) => void;
}

/** Notices that other programs changed our rules, from what the kernel reports and by the canary chain. */
export class RulesetWatch {
  readonly #canary: Canary;
  readonly #reporter: DamageReporter;
  readonly #unwatch: () => void;

  constructor(options: RulesetWatchOptions) {
    const { commands, written, changes, clock, logger, interval, onDamage } = options;
    const reporter = new DamageReporter({ written, commands, clock, logger, onDamage });
    this.#reporter = reporter;
    this.#canary = new Canary({
      commands,
      clock,
      logger,
      interval,
      onPlanted: (table, chain) => written.expectEmpty(table, chain),
      onLost: () => onDamage({ objects: new Map([['canary deleted', 1]]), by: 'unknown' }),
    });
    this.#unwatch = changes.watch({
      owns: (table, chain) => written.owns(table, chain),
      onDamage: (change) => reporter.damaged(change),
      onSuspicion: (by) => reporter.suspect(by),
    });
  }

  /** Begins to plant the canary and to look at it; to be called when rules are written. */
  startCanary(): void {
    this.#canary.start();
  }

  /** Makes what is missing of the canary. */
  async plantCanary(): Promise<void> {
    await this.#canary.plant();
  }

  async close(): Promise<void> {
    this.#unwatch();
    this.#reporter.close();
    await this.#canary.close();
  }
}
