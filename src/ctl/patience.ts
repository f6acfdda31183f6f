import { toMillis } from '../lib/duration.ts';

/** How long to wait for an answer, in milliseconds. */
export interface Patience {
  readonly answerMs: number;
  /** For status: the proxy answers it from memory, so one that needs longer hangs. */
  readonly statusMs: number;
}

const usual: Patience = { answerMs: 60_000, statusMs: 5_000 };

/** `timeout` is the value of --timeout; undefined when it was not given. */
export function patienceOf({ timeout }: { readonly timeout: bigint | undefined }): Patience {
  return timeout === undefined ? usual : samePatience(toMillis(timeout));
}

/** The same for every answer. */
export function samePatience(ms: number): Patience {
  return { answerMs: ms, statusMs: ms };
}
