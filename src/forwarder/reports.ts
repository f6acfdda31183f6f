import type { Clock } from '../lib/clock.ts';

/** A problem that an administrator should know about. */
export interface Report {
  readonly problem: string;
  /** Of the latest occurrence. */
  readonly detail: string;
  /** Occurrences since the last report. */
  readonly times: number;
}

const periodMs = 10_000;

/** Limits repetitions: a problem is reported at once, then at most once per period, with a count. */
export class Reports {
  readonly #clock: Clock;
  readonly #send: (report: Report) => void;
  readonly #kinds = new Map<string, { until: number; held: number }>();

  constructor(clock: Clock, send: (report: Report) => void) {
    this.#clock = clock;
    this.#send = send;
  }

  add(problem: string, detail: string): void {
    const now = this.#clock.monotonic();
    const kind = this.#kinds.get(problem);
    if (kind && now < kind.until) {
      kind.held++;
      return;
    }
    this.#kinds.set(problem, { until: now + periodMs, held: 0 });
    this.#send({ problem, detail, times: (kind?.held ?? 0) + 1 });
  }
}
