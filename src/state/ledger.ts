/**
 * The changes that one sync has to program. `take` returns all that are not acknowledged; only `acknowledge` removes
 * them.
 */
export interface Delta {
  /** Number of the take; acknowledging it covers all earlier ones. */
  readonly sequence: number;
  /** `namespace/name` of every Service whose ports or endpoints changed. */
  readonly changed: ReadonlySet<string>;
  /** When the changes were triggered, milliseconds since the Unix epoch, by `namespace/name`. */
  readonly triggerTimes: ReadonlyMap<string, readonly number[]>;
}

type TriggerTime = { readonly sequence: number; readonly time: number };

/** At most this many trigger times are kept, the oldest ones: while syncs fail, every change would add one. */
const MAX_TRIGGER_TIMES = 50_000;

/** Changes that no successful sync has programmed yet. */
export class Ledger {
  /** Number of the next take. */
  #sequence = 1;
  readonly #changed = new Map<string, number>();
  readonly #times = new Map<string, TriggerTime[]>();
  #timeCount = 0;

  recordChange(service: string): void {
    this.#changed.set(service, this.#sequence);
  }

  recordTriggerTime(service: string, time: number): void {
    if (this.#timeCount >= MAX_TRIGGER_TIMES) return;
    this.#timeCount++;
    const entry = { sequence: this.#sequence, time };
    const times = this.#times.get(service);
    if (times) times.push(entry);
    else this.#times.set(service, [entry]);
  }

  /** Called on a removal: the programming latency of earlier changes is then no longer measured. */
  discardTriggerTimes(service: string): void {
    this.#timeCount -= this.#times.get(service)?.length ?? 0;
    this.#times.delete(service);
  }

  take(): Delta {
    const triggerTimes = new Map<string, readonly number[]>();
    for (const [service, times] of this.#times) {
      triggerTimes.set(
        service,
        times.map(({ time }) => time),
      );
    }
    return {
      sequence: this.#sequence++,
      changed: new Set(this.#changed.keys()),
      triggerTimes,
    };
  }

  /** Removes what the delta holds, except what was recorded again after it was taken. */
  acknowledge({ sequence }: Delta): void {
    for (const [service, last] of this.#changed) if (last <= sequence) this.#changed.delete(service);
    for (const [service, times] of this.#times) {
      const later = times.filter((entry) => entry.sequence > sequence);
      this.#timeCount -= times.length - later.length;
      if (later.length > 0) this.#times.set(service, later);
      else this.#times.delete(service);
    }
  }
}
