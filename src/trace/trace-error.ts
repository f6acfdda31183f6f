import { messageOf } from '../lib/thrown.ts';

/** An error that says what could not be done and why, with a hint when rights are missing. */
export function traceError(failed: string, error: unknown): Error {
  const reason = messageOf(error);
  const hint = /\bEPERM\b/.test(reason) ? '; tracing needs CAP_NET_ADMIN' : '';
  return new Error(`${failed}: ${reason}${hint}`, { cause: error });
}
