import type { Clock } from './clock.ts';

/** Waits `ms`, or until the signal aborts; resolves in both cases. */
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
