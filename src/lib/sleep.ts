import type { Clock } from './clock.ts';

/** Waits `ms`, or until the signal aborts; resolves in both cases. */
export function sleep(clock: Clock, ms: number, signal?: AbortSignal): Promise<void> {
  if (signal?.aborted) return Promise.resolve();
  return new Promise((resolve) => {
    const timer = clock.setTimeout(() => {
      signal?.removeEventListener('abort', abort);
      resolve();
    }, ms);
    const abort = () => {
      timer.cancel();
      resolve();
    };
    signal?.addEventListener('abort', abort, { once: true });
  });
}
