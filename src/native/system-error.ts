import { getSystemErrorMap } from 'node:util';

/** Errno values that libuv does not name, or names differently from the kernel's documentation. */
const kernelNames: ReadonlyMap<number, string> = new Map([
  [85, 'ERESTART'],
  [95, 'EOPNOTSUPP'],
  [117, 'EUCLEAN'],
  [122, 'EDQUOT'],
  [524, 'ENOTSUPP'],
]);

let systemErrors: ReturnType<typeof getSystemErrorMap> | undefined;

/** What libuv knows of an errno value: its name and its text. Node makes the whole map whenever it is asked for it. */
function knownError(errno: number): [string, string] | undefined {
  systemErrors ??= getSystemErrorMap();
  return systemErrors.get(-errno);
}

/** The name of an errno value in the kernel's documentation; `E<number>` for an unknown one. */
export function errnoName(errno: number): string {
  return kernelNames.get(errno) ?? knownError(errno)?.[0] ?? `E${errno}`;
}

/** The text of an errno value. */
export function errnoText(errno: number): string {
  return knownError(errno)?.[1] ?? `error ${errno}`;
}

/** A system call that failed. */
export class SystemError extends Error {
  /** Errno name, such as `EPERM`. */
  readonly code: string;
  readonly errno: number;
  readonly syscall: string;

  constructor(syscall: string, errno: number) {
    super(`${syscall}: ${errnoName(errno)} (${errnoText(errno)})`);
    this.name = 'SystemError';
    this.code = errnoName(errno);
    this.errno = errno;
    this.syscall = syscall;
  }
}

/** Whether an error is a failed system call with this errno name. */
export function isSystemError(error: unknown, code: string): error is SystemError {
  return error instanceof SystemError && error.code === code;
}
