/** A started timer that can be stopped. Stopping twice, or after it fired, does nothing. */
export interface Timer {
  cancel(): void;
}

/** Time as the program sees it. Injected wherever time matters, so that tests can hold it still. */
export interface Clock {
  /** Milliseconds since the Unix epoch. */
  now(): number;
  /** Milliseconds from an arbitrary start; never jumps back. */
  monotonic(): number;
  setTimeout(run: () => void, ms: number): Timer;
}

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  setTimeout(run, ms) {
    // Node runs a longer timeout at once; 24 days is as good as "much later" to every caller.
    const handle = setTimeout(run, Math.min(ms, 0x7fffffff));
    return { cancel: () => clearTimeout(handle) };
  },
};
