import { type Clock, type Timer, wallTimeOf } from '../lib/clock.ts';
import type { Family } from '../model/ip.ts';
import type { Logger } from '../obs/log.ts';
import type { Counter } from '../obs/metrics.ts';
import type { Condition, RepairRecord, RulesWrong } from './backend.ts';
import { FightLog } from './fight-log.ts';
import type { RepairBudget } from './repair-budget.ts';

/** What another program did to what we wrote. */
export interface ForeignChange {
  /** Kinds of object, and how many of each were added or deleted; empty when it is not known that anything changed. */
  readonly objects: ReadonlyMap<string, number>;
  /** The program, by name and process id. */
  readonly by: string;
  /** Parts that may be damaged besides rules, such as sets of a table; absent when anything may be. */
  readonly suspects?: ReadonlySet<string>;
}

/** Parts of what was written that may no longer be there; rules may be missing as well. */
export type Suspects = ReadonlySet<string> | 'everything';

export interface RepairMetrics {
  /** Counts repairs. Label: ip_family. */
  readonly repairs: Counter;
  /** Counts the objects that other programs changed. Labels: ip_family, object. */
  readonly changedObjects: Counter;
}

export interface RepairOptions {
  readonly family: Family;
  /** What is changed and repaired, for the log: `table kube-proxy`. */
  readonly subject: string;
  readonly budget: RepairBudget;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: RepairMetrics;
  /** Requests the sync that repairs. */
  readonly request: () => void;
}

/** Changes by other programs that no sync has put right. Times are monotonic, like all in this file. */
interface Damage {
  /** When the first change was noticed that certainly is one; undefined while there is only a suspicion. */
  readonly wrongSince: number | undefined;
  readonly by: string;
  readonly changes: string;
  readonly suspects: Suspects;
}

const firstRetryMs = 1_000;
const maxRetryMs = 30_000;

/**
 * Remembers what other programs damaged until a sync has put it right, and decides when that sync begins: at once, or
 * after the pause that the budget asks for. A repair that fails is retried after a second, then at growing intervals.
 */
export class Repairs {
  readonly #options: RepairOptions;
  readonly #log: FightLog;
  /** What the next repair has to put right. */
  #damage: Damage | undefined;
  /** What the sync under way puts right. */
  #underRepair: Damage | undefined;
  #pause: { readonly timer: Timer; readonly dueAt: number } | undefined;
  /** The sync was requested and has not begun. */
  #isRequested = false;
  #isMeasuring = false;
  #failures = 0;
  #count = 0;
  #last: RepairRecord['last'];
  /** Total time of the damage that was put right. */
  #wrongMs = 0;
  #isClosed = false;

  constructor(options: RepairOptions) {
    this.#options = options;
    this.#log = new FightLog(options);
  }

  /** The damage that is known and not put right. */
  get wrong(): RulesWrong | undefined {
    const damage = merged(this.#underRepair, this.#damage);
    if (damage?.wrongSince === undefined) return undefined;
    const { wrongSince, by, changes } = damage;
    const { clock } = this.#options;
    return {
      since: wallTimeOf(clock, wrongSince),
      by,
      changes,
      ...(this.#pause && { dueAt: wallTimeOf(clock, this.#pause.dueAt) }),
    };
  }

  get fight(): Condition['fight'] {
    return this.#log.fight;
  }

  get record(): RepairRecord {
    const { clock } = this.#options;
    const since = merged(this.#underRepair, this.#damage)?.wrongSince;
    const wrongMs = this.#wrongMs + (since === undefined ? 0 : clock.monotonic() - since);
    const last = this.#last && { ...this.#last, at: wallTimeOf(clock, this.#last.at) };
    return { count: this.#count, wrongMs, ...(last && { last }) };
  }

  /** Whether the next sync has to repair. */
  get isRequested(): boolean {
    return this.#isRequested;
  }

  changed(change: ForeignChange): void {
    const { metrics, family, clock } = this.#options;
    const objects = change.objects.size > 0 ? change.objects : new Map([['unknown', 1]]);
    for (const [object, count] of objects) metrics.changedObjects.inc({ ip_family: family, object }, count);
    const changes = [...objects].map(([object, count]) => `${object}: ${count}`).join(', ');
    this.#damage = merged(this.#damage, {
      wrongSince: change.objects.size > 0 ? clock.monotonic() : undefined,
      by: change.by,
      changes,
      suspects: change.suspects ?? 'everything',
    });
    this.#log.changed(change.by, changes);
    // The end of a repair under way tells how long the pause is.
    if (!this.#underRepair) this.#schedule(this.#options.budget.waitMs);
  }

  /** To be called when a sync begins that puts everything right that is noted so far. Returns the suspect parts. */
  begin(): Suspects | undefined {
    this.#cancelPause();
    this.#isRequested = false;
    if (!this.#damage) return undefined;
    this.#underRepair = merged(this.#underRepair, this.#damage);
    this.#damage = undefined;
    if (!this.#isMeasuring) this.#options.budget.begin();
    this.#isMeasuring = true;
    return this.#underRepair?.suspects;
  }

  /** To be called when a sync has ended, whether it repaired something or not. */
  end(hasSucceeded: boolean): void {
    const { budget } = this.#options;
    const repaired = this.#underRepair;
    if (!repaired) return;
    this.#underRepair = undefined;
    this.#isMeasuring = false;
    const cpuMs = budget.end();
    if (hasSucceeded) this.#succeeded(repaired, cpuMs);
    else this.#damage = merged(repaired, this.#damage);
    this.#failures = hasSucceeded ? 0 : this.#failures + 1;
    if (this.#damage) this.#schedule(Math.max(budget.waitMs, this.#retryMs));
  }

  close(): void {
    this.#isClosed = true;
    this.#cancelPause();
    this.#log.close();
  }

  get #retryMs(): number {
    if (this.#failures === 0) return 0;
    return Math.min(maxRetryMs, firstRetryMs * 2 ** (this.#failures - 1));
  }

  #succeeded({ by, changes, wrongSince }: Damage, cpuMs: number): void {
    const { metrics, family, clock } = this.#options;
    const at = clock.monotonic();
    const wrongMs = wrongSince === undefined ? 0 : at - wrongSince;
    this.#count++;
    this.#last = { at, by, changes };
    this.#wrongMs += wrongMs;
    metrics.repairs.inc({ ip_family: family });
    this.#log.repaired(cpuMs, wrongMs);
  }

  #schedule(delayMs: number): void {
    if (this.#isClosed || this.#isRequested || this.#pause) return;
    if (delayMs === 0) {
      this.#isRequested = true;
      this.#options.request();
      return;
    }
    const { clock, budget } = this.#options;
    const timer = clock.setTimeout(() => {
      this.#pause = undefined;
      // Meanwhile another family may have used the budget.
      this.#schedule(budget.waitMs);
    }, delayMs);
    this.#pause = { timer, dueAt: clock.monotonic() + delayMs };
    this.#log.paused(delayMs);
  }

  #cancelPause(): void {
    this.#pause?.timer.cancel();
    this.#pause = undefined;
  }
}

/** The earlier beginning, the later cause, and the parts of both. */
function merged(earlier: Damage | undefined, later: Damage | undefined): Damage | undefined {
  if (!earlier || !later) return earlier ?? later;
  return {
    ...later,
    wrongSince: earlier.wrongSince ?? later.wrongSince,
    suspects: union(earlier.suspects, later.suspects),
  };
}

export function union(known: Suspects | undefined, more: Suspects): Suspects {
  if (known === 'everything' || more === 'everything') return 'everything';
  return new Set([...(known ?? []), ...more]);
}
