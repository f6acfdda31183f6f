import { RepairBudget } from '../src/backends/repair-budget.ts';
import type { Clock } from '../src/lib/clock.ts';
import { ignoredMetric } from '../src/obs/metrics.ts';

/** What an engine needs for repairs, where a test does not look at them: they cost nothing and are not counted. */
export function repairParts(clock: Clock) {
  return {
    budget: new RepairBudget(clock, () => 0),
    metrics: { repairs: ignoredMetric, changedObjects: ignoredMetric },
  };
}
