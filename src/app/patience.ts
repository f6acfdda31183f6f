import type { Clock } from '../lib/clock.ts';

/** What the promise gives, or an error that says what did not come within `ms`. */
export async function withPatience<T>(
  promise: Promise<T>,
  ms: number,
  clock: Clock,
  missing: () => string,
): Promise<T> {
  const expired = Promise.withResolvers<never>();
  const timer = clock.setTimeout(
    () => expired.reject(new Error(`${missing()} did not come within ${ms / 1000} s`)),
    ms,
  );
  try {
    return await Promise.race([promise, expired.promise]);
  } finally {
    timer.cancel();
  }
}
