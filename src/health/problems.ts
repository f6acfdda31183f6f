import type { Problem } from '../model/problem.ts';
import type { Sample } from '../obs/metrics.ts';

/** Returns the problems of one part of the program as they are now. */
export type ProblemSource = () => readonly Problem[];

/**
 * Everything that is known to be wrong now. `status`, its exit code, /healthz and the metric are made from this list and
 * from nothing else, so that they cannot contradict each other.
 */
export class Problems {
  readonly #sources: ProblemSource[] = [];

  from(source: ProblemSource): void {
    this.#sources.push(source);
  }

  list(): Problem[] {
    return this.#sources.flatMap((source) => source());
  }

  /** The number of problems of each kind. */
  samples(): Sample[] {
    const counts = new Map<string, number>();
    for (const { kind } of this.list()) counts.set(kind, (counts.get(kind) ?? 0) + 1);
    return [...counts].map(([kind, value]) => ({ labels: { kind }, value }));
  }
}
