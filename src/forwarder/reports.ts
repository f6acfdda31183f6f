import type { Clock } from '../lib/clock.ts';

/** Something that an administrator should know, and how often it happened since it was last told. */
export interface Report {
  readonly problem: string;
  /** Of the latest occurrence. */
  readonly detail: string;
  readonly times: number;
}

const periodMs = 10_000;

/** Holds repetitions back: every kind of problem is told at once, and then at most once per period. */
export class Reports {
  readonly #clock: Clock;
  readonly #tell: (report: Report) => void;
  readonly #kinds = new Map<string, { until: number; held: number }>();

  constructor(clock: Clock, tell: (report: Report) => void) {
    this.#clock = clock;
    this.#tell = tell;
  }

  add(problem: string, detail: string): void {
    const now = this.#clock.monotonic();
    const kind = this.#kinds.get(problem);
    if (kind && now < kind.until) {
      kind.held++;
      return;
    }
    this.#kinds.set(problem, { until: now + periodMs, held: 0 });
    this.#tell({ problem, detail, times: (kind?.held ?? 0) + 1 });
  }
}
