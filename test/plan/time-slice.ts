import { systemClock } from '../../src/lib/clock.ts';
import { TimeSlice } from '../../src/lib/time-slice.ts';

/** A time slice for work whose duration a test does not care about. */
export function timeSlice(): TimeSlice {
  return new TimeSlice(systemClock);
}
