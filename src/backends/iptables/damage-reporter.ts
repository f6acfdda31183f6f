import type { Commands } from '../../kernel/iptables/commands.ts';
import type { Clock, Timer } from '../../lib/clock.ts';
import type { Logger } from '../../obs/log.ts';
import type { ForeignChange } from '../repairs.ts';
import type { WrittenRules } from './written-rules.ts';

export interface DamageReporterOptions {
  readonly written: WrittenRules;
  readonly commands: Commands;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Called when another program has damaged our rules and seems to be done. */
  readonly onDamage: (change: ForeignChange) => void;
}

/** Reloading a firewall takes many commands: a repair in between would be in vain. */
const settleMs = 100;
const maxSettleMs = 1_000;
const busyMs = 250;

/**
 * Combines related damage into one report. On a mere suspicion it compares the kernel with what we wrote, and reports
 * only real damage. A comparison dumps the tables, so one serves many suspicions, and none runs while we write.
 */
export class DamageReporter {
  readonly #options: DamageReporterOptions;
  readonly #damage = new Map<string, number>();
  #by = 'unknown';
  #isSuspicious = false;
  #isLooking = false;
  #since: number | undefined;
  #pending: Timer | undefined;
  #isClosed = false;

  constructor(options: DamageReporterOptions) {
    this.#options = options;
  }

  /** `by` names the program that may have changed something. */
  suspect(by: string): void {
    this.#by = by;
    this.#isSuspicious = true;
    this.#settle();
  }

  damaged({ objects, by }: ForeignChange): void {
    this.#by = by;
    for (const [object, count] of objects) this.#damage.set(object, (this.#damage.get(object) ?? 0) + count);
    this.#settle();
  }

  close(): void {
    this.#isClosed = true;
    this.#pending?.cancel();
  }

  #settle(): void {
    const now = this.#options.clock.monotonic();
    this.#since ??= now;
    this.#lookIn(Math.max(0, Math.min(settleMs, this.#since + maxSettleMs - now)));
  }

  #lookIn(ms: number): void {
    if (this.#isClosed) return;
    this.#pending?.cancel();
    this.#pending = this.#options.clock.setTimeout(() => {
      this.#pending = undefined;
      this.#since = undefined;
      if (this.#damage.size > 0) this.#report();
      else if (this.#isSuspicious) void this.#look();
    }, ms);
  }

  /** A report repairs everything, so it clears all suspicions. */
  #report(): void {
    const objects = new Map(this.#damage);
    this.#damage.clear();
    this.#isSuspicious = false;
    this.#options.onDamage({ objects, by: this.#by });
  }

  async #look(): Promise<void> {
    const { written, commands, logger } = this.#options;
    if (this.#isLooking || written.isWriting) return this.#lookIn(busyMs);
    this.#isSuspicious = false;
    this.#isLooking = true;
    try {
      const { epoch } = written;
      const objects = await written.differences(commands);
      if (this.#isClosed || objects.size === 0) return;
      if (written.epoch === epoch) this.#options.onDamage({ objects, by: this.#by });
      else this.suspect(this.#by);
    } catch (error) {
      logger.error(error, 'Cannot compare the rules with what was written', { ipFamily: commands.family });
    } finally {
      this.#isLooking = false;
    }
  }
}
