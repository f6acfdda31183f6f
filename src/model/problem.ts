import type { Family } from './ip.ts';

/** Something that an operator should know and act on. It lasts until its cause is gone. */
export interface Problem {
  /** For scripts, alerts and the metric: a name in CamelCase that stays the same. */
  readonly kind: string;
  /** Absent when it concerns the whole program. */
  readonly family?: Family;
  /** Milliseconds since the Unix epoch; absent when that is not known. */
  readonly since?: number;
  /** Services of this node do not work as they should, so /healthz answers 503. */
  readonly isOutage: boolean;
  /** What is wrong, in one sentence without a full stop. */
  readonly text: string;
}

/** The state of the proxy in one word. */
export type ProxyState = 'starting' | 'healthy' | 'degraded' | 'unhealthy';

/** The kind of the problem that is normal until the first lists have arrived. */
export const STARTING = 'Starting';

/** The kind of the problem of a copy that waits until another one ends. Until then it has no plans. */
export const ANOTHER_COPY_RUNS = 'AnotherCopyRuns';

export function stateOf(problems: readonly Problem[]): ProxyState {
  if (problems.some(({ isOutage }) => isOutage)) return 'unhealthy';
  if (problems.some(({ kind }) => kind === STARTING)) return 'starting';
  return problems.length > 0 ? 'degraded' : 'healthy';
}

/** Whether Services of this family work, apart from problems that are no outage. */
export function isServing(family: Family, problems: readonly Problem[]): boolean {
  return !problems.some((problem) => problem.isOutage && (problem.family ?? family) === family);
}
