/** A started timer. Cancelling it twice, or after it fired, does nothing. */
export interface Timer {
  cancel(): void;
}

/** The source of time, injected so that tests can control it. */
export interface Clock {
  /** Milliseconds since the Unix epoch. */
  now(): number;
  /** Milliseconds from an arbitrary start; never jumps back. */
  monotonic(): number;
  setTimeout(run: () => void, ms: number): Timer;
}

/**
 * Converts a monotonic time to milliseconds since the Unix epoch, by the wall clock as it is now. Keep monotonic times and
 * convert them when they are shown: then a clock that was set changes neither their order nor their age.
 */
export function wallTimeOf(clock: Pick<Clock, 'now' | 'monotonic'>, monotonic: number): number {
  return clock.now() - (clock.monotonic() - monotonic);
}

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => Number(process.hrtime.bigint()) / 1e6,
  setTimeout(run, ms) {
    // Node would run a longer timeout at once; 24 days are late enough for every caller.
    const handle = setTimeout(run, Math.min(ms, 0x7fffffff));
    return { cancel: () => clearTimeout(handle) };
  },
};
