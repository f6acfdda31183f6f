import type { Clock } from '../lib/clock.ts';

/** Waits; wakes early when the signal aborts, which the caller then sees for itself. */
export function sleep(clock: Clock, ms: number, signal?: AbortSignal): Promise<void> {
  if (signal?.aborted) return Promise.resolve();
  return new Promise((resolve) => {
    const wake = () => {
      timer.cancel();
      signal?.removeEventListener('abort', wake);
      resolve();
    };
    const timer = clock.setTimeout(wake, ms);
    signal?.addEventListener('abort', wake);
  });
}
