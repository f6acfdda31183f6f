import type { Measurement } from './report/measurement.ts';

/** Settings of a part of the benchmark, and functions for its progress and results. */
export interface Bench {
  /** `--sizes`, as in `1000x3,50000x10`; a part without sizes ignores it. */
  readonly sizes?: string;
  /** Path of another kube-proxy to measure for comparison. */
  readonly peer?: string;
  /** Shows the next step on the terminal. */
  step(what: string): void;
  /** Adds a remark for the reader of the figures. */
  note(text: string): void;
  /** Adds figures to the report; they stay in it even if the part fails later. */
  record(measurements: readonly Measurement[]): void;
}

/** A part of the benchmark. */
export interface Part {
  run(bench: Bench): Promise<void>;
}
