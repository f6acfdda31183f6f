import type { SystemFiles } from './system-files.ts';

/** A kernel version as far as features depend on it. */
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

/** The version of the running kernel. Throws when it cannot be told. */
export function kernelVersion(files: SystemFiles): KernelVersion {
  const release = files.read(OSRELEASE).trim();
  const version = parseKernelRelease(release);
  if (!version) throw new Error(`kernel release ${JSON.stringify(release)} does not begin with a version`);
  return version;
}

export function isAtLeast(version: KernelVersion, minimum: KernelVersion): boolean {
  return version.major > minimum.major || (version.major === minimum.major && version.minor >= minimum.minor);
}

/** Whether this kernel has IPv6 and it is not switched off. */
export function hasIPv6(files: SystemFiles): boolean {
  return tryRead(files, IF_INET6) !== undefined && tryRead(files, DISABLE_IPV6)?.trim() !== '1';
}

/** A feature of the kernel that is missing, and the version that would have it. */
export class FeatureMissingError extends Error {
  readonly code = 'ERR_FEATURE_MISSING';
  readonly feature: string;
  readonly minimum: KernelVersion;

  constructor(feature: string, minimum: KernelVersion) {
    super(`this kernel has no ${feature}, which needs version ${minimum.major}.${minimum.minor} or later`);
    this.name = 'FeatureMissingError';
    this.feature = feature;
    this.minimum = minimum;
  }
}

/**
 * A feature that is looked for once, by trying it: version numbers say little on kernels with backports. The version
 * only serves the error message.
 */
export class FeatureTest {
  readonly name: string;
  readonly minimum: KernelVersion;
  readonly #probe: () => Promise<boolean>;
  #result: Promise<boolean> | undefined;

  /** `probe` rejects when it cannot tell, for want of a privilege for example; it is then tried again next time. */
  constructor(name: string, minimum: KernelVersion, probe: () => Promise<boolean>) {
    this.name = name;
    this.minimum = minimum;
    this.#probe = probe;
  }

  isSupported(): Promise<boolean> {
    this.#result ??= this.#probe().catch((error: unknown) => {
      this.#result = undefined;
      throw error;
    });
    return this.#result;
  }

  /** Rejects with FeatureMissingError when the kernel lacks the feature. */
  async require(): Promise<void> {
    if (!(await this.isSupported())) throw new FeatureMissingError(this.name, this.minimum);
  }
}

function tryRead(files: SystemFiles, path: string): string | undefined {
  try {
    return files.read(path);
  } catch {
    return undefined;
  }
}
