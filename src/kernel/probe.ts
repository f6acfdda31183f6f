import type { SystemFiles } from './system-files.ts';

/** The part of a kernel version that features depend on. */
export interface KernelVersion {
  readonly major: number;
  readonly minor: number;
}

const OSRELEASE = '/proc/sys/kernel/osrelease';
const IF_INET6 = '/proc/net/if_inet6';
const DISABLE_IPV6 = '/proc/sys/net/ipv6/conf/all/disable_ipv6';

/** Reads `6.1.0-18-amd64`, `5.13-rc1` or `6.18.44+`; undefined when it does not begin with two numbers. */
export function parseKernelRelease(release: string): KernelVersion | undefined {
  const match = /^(\d+)\.(\d+)(?![\d])/.exec(release.trim());
  return match ? { major: Number(match[1]), minor: Number(match[2]) } : undefined;
}

/** The version of the running kernel. Throws when the release is unreadable or begins with no version. */
export function kernelVersion(files: SystemFiles): KernelVersion {
  const release = files.read(OSRELEASE).trim();
  const version = parseKernelRelease(release);
  if (!version) throw new Error(`kernel release ${JSON.stringify(release)} does not begin with a version`);
  return version;
}

export function isAtLeast(version: KernelVersion, minimum: KernelVersion): boolean {
  return version.major > minimum.major || (version.major === minimum.major && version.minor >= minimum.minor);
}

/** Whether this kernel has IPv6 and it is not disabled. */
export function hasIPv6(files: SystemFiles): boolean {
  return tryRead(files, IF_INET6) !== undefined && tryRead(files, DISABLE_IPV6)?.trim() !== '1';
}

function tryRead(files: SystemFiles, path: string): string | undefined {
  try {
    return files.read(path);
  } catch {
    return undefined;
  }
}
