/**
 * Calls `look` again and again, `everyMs` after the last call ended, while somebody can see the page. Returns a function
 * that ends it.
 */
export function repeat(everyMs: number, look: (signal: AbortSignal) => Promise<void>): () => void {
  const end = new AbortController();
  const go = async () => {
    while (!end.signal.aborted) {
      await visible(end.signal);
      await look(end.signal).catch(() => undefined);
      await pause(everyMs, end.signal);
    }
  };
  void go();
  return () => end.abort();
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener('abort', () => {
      clearTimeout(timer);
      resolve();
    });
  });
}

function visible(signal: AbortSignal): Promise<void> {
  if (document.visibilityState === 'visible') return Promise.resolve();
  return new Promise((resolve) => {
    document.addEventListener('visibilitychange', () => resolve(), { once: true, signal });
    signal.addEventListener('abort', () => resolve());
  });
}
