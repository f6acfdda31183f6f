import { isNetlinkError } from '../../kernel/netlink/error.ts';

/** An object does not exist in the kernel. */
export class AbsentError extends Error {
  readonly code = 'ERR_IPVS_ABSENT';

  constructor(what: string) {
    super(`there is no ${what}`);
    this.name = 'AbsentError';
  }
}

/** Whether the kernel refused a virtual server because it has no such scheduler, nor a module with it. */
export function lacksScheduler(error: unknown): boolean {
  return isNetlinkError(error, 'ENOENT');
}

/** Whether an object does not exist: the virtual server (ESRCH), the real server (ENOENT), a set or the device. */
export function isAbsent(error: unknown): boolean {
  return isNetlinkError(error, 'ESRCH') || isNetlinkError(error, 'ENOENT') || error instanceof AbsentError;
}
