const numbers = { SIGTERM: 15, SIGINT: 2 } as const;

type Signal = keyof typeof numbers;

const signals = Object.keys(numbers) as Signal[];

/**
 * Makes SIGTERM and SIGINT end the process by the signal itself, after `lastWords`; the rules stay in the kernel. Replaces
 * the effect of an earlier call. The first call is the first thing a start does, because process 1 of a container gets
 * only signals that it handles. It ends the process at once if a signal came even before.
 */
export function endOnSignals(lastWords: () => void = () => {}): void {
  for (const signal of signals) {
    const earlier = process.listeners(signal);
    if (earlier.length === 0 && wasLost(signal)) endBy(signal);
    process.once(signal, () => {
      lastWords();
      endBy(signal);
    });
    for (const listener of earlier) process.off(signal, listener);
  }
}

/** The kernel ignores the default action for process 1, which therefore exits with the code that a shell would report. */
function endBy(signal: Signal): void {
  if (process.pid === 1) process.exit(128 + numbers[signal]);
  process.kill(process.pid, signal);
}

/**
 * Whether process 1 got the signal while Node started. Node's own handler, which is there before any JavaScript runs, works
 * once: it raises the signal again with the default action. Then the signal has no handler any more.
 */
function wasLost(signal: Signal): boolean {
  if (process.pid !== 1) return false;
  const handled = /^SigCgt:\s*[0-9a-f]*([0-9a-f]{8})$/m.exec(statusText())?.[1];
  return handled !== undefined && (Number.parseInt(handled, 16) & (1 << (numbers[signal] - 1))) === 0;
}

function statusText(): string {
  try {
    // An import at the top would load Node's streams, because the entry of the bundle is an ES module.
    return process.getBuiltinModule('node:fs').readFileSync('/proc/self/status', 'latin1');
  } catch {
    return '';
  }
}
