import { isNetlinkError } from '../../kernel/netlink/error.ts';

/** What was to be changed or deleted is not there: the virtual server (ESRCH) or the real server (ENOENT). */
export function isAbsent(error: Error): boolean {
  return isNetlinkError(error, 'ESRCH') || isNetlinkError(error, 'ENOENT');
}

export function asError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error));
}
