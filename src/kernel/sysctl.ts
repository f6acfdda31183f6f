import { messageOf } from '../lib/thrown.ts';
import type { SystemFiles } from './system-files.ts';

/** The kernel refused to set a sysctl. */
export class SysctlError extends Error {
  readonly code = 'ERR_SYSCTL';
  /** Path below /proc/sys. */
  readonly sysctl: string;

  constructor(sysctl: string, value: number, cause: unknown) {
    super(`can't set sysctl ${sysctl} to ${value}: ${messageOf(cause)}`, { cause });
    this.name = 'SysctlError';
    this.sysctl = sysctl;
  }
}

/** Kernel settings, named by their path below /proc/sys, such as `net/ipv4/ip_forward`. */
export class Sysctl {
  readonly #files: SystemFiles;
  readonly #root: string;

  constructor(files: SystemFiles, root = '/proc/sys') {
    this.#files = files;
    this.#root = root;
  }

  /** The value; undefined when it cannot be read or is not a decimal integer. */
  read(name: string): number | undefined {
    let text: string;
    try {
      text = this.#files.read(this.#path(name)).trim();
    } catch {
      // A missing setting is no error: which settings exist depends on modules and namespaces.
      return undefined;
    }
    return /^-?\d+$/.test(text) ? Number(text) : undefined;
  }

  /** Throws SysctlError when the kernel refuses. */
  write(name: string, value: number): void {
    try {
      this.#files.write(this.#path(name), String(value));
    } catch (error) {
      throw new SysctlError(name, value, error);
    }
  }

  /** Writes the value if it differs, so that a correct setting may be read-only. Returns whether it wrote. */
  ensure(name: string, value: number): boolean {
    if (this.read(name) === value) return false;
    this.write(name, value);
    return true;
  }

  #path(name: string): string {
    return `${this.#root}/${name}`;
  }
}
