import type { Clock } from '../lib/clock.ts';
import { messageOf } from '../lib/thrown.ts';
import { TimeSlice } from '../lib/time-slice.ts';
import type { ServicePlan } from '../plan/service-plan.ts';

/** A service port cannot be turned into what a mode writes. Only a change of the service port can help. */
export class UnpreparedError extends Error {
  constructor(cause: unknown) {
    super(`cannot be prepared: ${messageOf(cause)}`, { cause });
    this.name = 'UnpreparedError';
  }
}

/** The service ports, of those with these keys, for which `prepareAlone` throws. Yields to the event loop meanwhile. */
export async function findUnprepared(
  keys: Iterable<string>,
  plans: ReadonlyMap<string, ServicePlan>,
  prepareAlone: (plan: ServicePlan) => void,
  clock: Clock,
): Promise<Map<string, UnpreparedError>> {
  const unprepared = new Map<string, UnpreparedError>();
  const timeSlice = new TimeSlice(clock);
  for (const key of keys) {
    const plan = plans.get(key);
    try {
      if (plan) prepareAlone(plan);
    } catch (error) {
      unprepared.set(key, new UnpreparedError(error));
    }
    if (timeSlice.isSpent) await timeSlice.yield();
  }
  return unprepared;
}
