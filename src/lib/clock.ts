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
    const handle = setTimeout(run, ms);
    return { cancel: () => clearTimeout(handle) };
  },
};
