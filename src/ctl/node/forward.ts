import { failureText } from './failure.ts';
import type { StartKubectl } from './kubectl.ts';

/** A port of this machine that leads to a port of a pod. */
export interface Forward {
  /** At 127.0.0.1. */
  readonly port: number;
  /** Ends kubectl, and waits until it has ended. Returns what it wrote to stderr. */
  end(): Promise<string>;
  /** Resolves when kubectl ends on its own, or by `end`. */
  readonly ended: Promise<unknown>;
}

export interface ForwardTarget {
  readonly namespace: string;
  readonly pod: string;
  readonly port: number;
}

/** Starts `kubectl port-forward` and waits until it listens. Rejects when it ends before, or takes longer than `timeoutMs`. */
export async function openForward(
  start: StartKubectl,
  { namespace, pod, port }: ForwardTarget,
  timeoutMs: number,
): Promise<Forward> {
  const listening = Promise.withResolvers<number>();
  const args = ['port-forward', '-n', namespace, `pod/${pod}`, `:${port}`, '--address', '127.0.0.1'];
  const running = start(args, (stdout) => {
    const [, local] = /^Forwarding from 127\.0\.0\.1:(\d+) -> /m.exec(stdout) ?? [];
    if (local !== undefined) listening.resolve(Number(local));
  });
  const timer = setTimeout(() => {
    listening.reject(new Error(`kubectl port-forward: not ready within ${timeoutMs / 1000} s`));
    running.kill();
  }, timeoutMs);
  running.ended.then(
    (end) => listening.reject(new Error(failureText('port-forward', end))),
    (error: unknown) => listening.reject(error),
  );
  return {
    port: await listening.promise.finally(() => clearTimeout(timer)),
    ended: running.ended,
    async end() {
      running.kill();
      return (await running.ended).stderr;
    },
  };
}
