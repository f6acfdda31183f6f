import { constants } from 'node:os';

/**
 * Ends on SIGTERM and SIGINT at once, by the signal itself, after `lastWords`; what is in the kernel stays there.
 * As process 1 of a container the signal has no default action, so an exit code stands in for it.
 */
export function endOnSignals(lastWords: () => void): void {
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    process.once(signal, () => {
      lastWords();
      process.kill(process.pid, signal);
      setImmediate(() => process.exit(128 + constants.signals[signal]));
    });
  }
}
