import type { Clock } from '../lib/clock.ts';

/**
 * Wall-clock milliseconds with a fraction. The wall clock counts whole milliseconds only, so the fraction comes
 * from the monotonic clock, re-anchored whenever the two have drifted apart by more than one millisecond.
 */
export function fineTime(clock: Clock): () => number {
  let anchor = clock.now() - clock.monotonic();
  return () => {
    const wall = clock.now();
    const monotonic = clock.monotonic();
    if (Math.abs(wall - (monotonic + anchor)) > 1) anchor = wall - monotonic;
    return monotonic + anchor;
  };
}
