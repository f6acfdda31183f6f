import { constants } from 'node:os';

/**
 * Makes SIGTERM and SIGINT end the process by the signal itself, after `lastWords`. The rules stay in the kernel. The
 * kernel ignores such a signal for process 1 of a container, which therefore exits with the corresponding code.
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
