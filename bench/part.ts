import type { Measurement } from './report/measurement.ts';

/** What a part of the benchmark is given. */
export interface Bench {
  /** `--sizes`, as in `1000x3,50000x10`; a part without sizes ignores it. */
  readonly sizes?: string;
  /** Path of a kube-proxy to measure beside the own one. */
  readonly peer?: string;
  /** Says what comes next, for whoever waits. */
  step(what: string): void;
  /** What a reader of the figures should know. */
  note(text: string): void;
  /** Figures count from here on, also when the part fails later. */
  record(measurements: readonly Measurement[]): void;
}

/** A part of the benchmark. */
export interface Part {
  run(bench: Bench): Promise<void>;
}
