import type { Clock } from '../lib/clock.ts';

/** Repairs may take this share of one core while another program keeps changing what was written. */
export const repairShare = 0.2;
/** The least that a repair counts: some of its work, such as noticing the change, is not measured. */
const minCostMs = 5;

/**
 * Limits the CPU that repairs take, in all families together. Another program can change the rules again and again; a
 * pause after each repair keeps that from using up the node. The pause is four times the CPU time of the repair, so
 * repairs take at most a fifth of a core, and it is never longer than that needs: 5 ms of work are followed by a pause of
 * 20 ms, 2 s of work by one of 8 s. A repair after a quiet time begins at once. There is no fixed pause, since the node's
 * Services do not work in it.
 */
export class RepairBudget {
  readonly #clock: Clock;
  readonly #cpuMs: () => number | undefined;
  /** When the next repair may begin, in monotonic milliseconds. */
  #freeAt = Number.NEGATIVE_INFINITY;
  #running = 0;
  /** CPU time that is accounted for; undefined when it is not known. */
  #counted: number | undefined;
  /** The same in monotonic milliseconds. */
  #countedAt = 0;

  /** `cpuMs` returns the CPU time of this process and the programs that it ran; undefined when it is not known. */
  constructor(clock: Clock, cpuMs: () => number | undefined) {
    this.#clock = clock;
    this.#cpuMs = cpuMs;
  }

  /** Milliseconds until the next repair may begin; 0 when it may begin now. */
  get waitMs(): number {
    return Math.max(0, this.#freeAt - this.#clock.monotonic());
  }

  /** To be called when a repair begins. */
  begin(): void {
    if (this.#running === 0) this.#spent();
    this.#running++;
  }

  /** To be called when it ends. Returns the CPU time that it took; what repairs take at the same time counts once. */
  end(): number {
    const cost = this.#spent();
    this.#running--;
    const pauseMs = Math.max(cost, minCostMs) * (1 / repairShare - 1);
    this.#freeAt = Math.max(this.#freeAt, this.#clock.monotonic()) + pauseMs;
    return cost;
  }

  /** The CPU time since the last call. Where it is not known, the time by the clock stands for it. */
  #spent(): number {
    const [before, since] = [this.#counted, this.#countedAt];
    this.#counted = this.#cpuMs();
    this.#countedAt = this.#clock.monotonic();
    if (before === undefined || this.#counted === undefined) return this.#countedAt - since;
    return this.#counted - before;
  }
}
