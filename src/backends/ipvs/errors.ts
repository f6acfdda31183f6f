import { isNetlinkError } from '../../kernel/netlink/error.ts';

/** There is no such thing in the kernel. */
export class AbsentError extends Error {
  readonly code = 'ERR_IPVS_ABSENT';

  constructor(what: string) {
    super(`there is no ${what}`);
    this.name = 'AbsentError';
  }
}

/** What was asked for is not there: the virtual server (ESRCH), the real server (ENOENT), a set or the device. */
export function isAbsent(error: unknown): boolean {
  return isNetlinkError(error, 'ESRCH') || isNetlinkError(error, 'ENOENT') || error instanceof AbsentError;
}
