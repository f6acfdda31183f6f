import { availableParallelism } from 'node:os';
import { formatDuration, SECOND } from '../lib/duration.ts';
import type { Logger } from '../obs/log.ts';
import type { SystemFiles } from './system-files.ts';

/** The `conntrack` section of the configuration; durations in nanoseconds. */
export interface ConntrackSettings {
  readonly maxPerCore: number | null;
  readonly min: number | null;
  readonly tcpEstablishedTimeout: bigint | null;
  readonly tcpCloseWaitTimeout: bigint | null;
  readonly tcpBeLiberal: boolean;
  readonly udpTimeout: bigint;
  readonly udpStreamTimeout: bigint;
}

/** No node gets a larger table than this by scaling with its cores. */
const MAX_SCALED_ENTRIES = 1_048_576;

const ONLINE_CPUS = '/sys/devices/system/cpu/online';
const HASH_SIZE = '/sys/module/nf_conntrack/parameters/hashsize';

/** A setting that could not be applied; `path` and `value` say which. */
export class TuningError extends Error {
  constructor(action: string, cause: unknown) {
    super(`${action}: ${cause instanceof Error ? cause.message : String(cause)}`, { cause });
    this.name = 'TuningError';
  }
}

/**
 * Sizes the kernel's connection tracking table and its timeouts. Files that already hold the wanted value are not
 * written, so a read-only /proc/sys is fine when there is nothing to change. Throws a TuningError otherwise.
 */
export function tuneConntrack(settings: ConntrackSettings, files: SystemFiles, logger: Logger): void {
  const max = tableSize(settings, () => onlineCPUs(files, logger));
  if (max > 0) setTableSize(max, files, logger);
  setTimeoutSeconds('nf_conntrack_tcp_timeout_established', settings.tcpEstablishedTimeout, files, logger);
  setTimeoutSeconds('nf_conntrack_tcp_timeout_close_wait', settings.tcpCloseWaitTimeout, files, logger);
  if (settings.tcpBeLiberal) ensure(sysctlPath('nf_conntrack_tcp_be_liberal'), 1, files, logger);
  setTimeoutSeconds('nf_conntrack_udp_timeout', settings.udpTimeout, files, logger);
  setTimeoutSeconds('nf_conntrack_udp_timeout_stream', settings.udpStreamTimeout, files, logger);
}

/** Entries the table should hold; 0 means leave it alone. A minimum above the cap is honoured only below the cap. */
export function tableSize(
  settings: Pick<ConntrackSettings, 'maxPerCore' | 'min'>,
  cpus: () => number,
): number {
  if (settings.maxPerCore === null || settings.maxPerCore <= 0) return 0;
  const scaled = settings.maxPerCore * cpus();
  if (scaled > MAX_SCALED_ENTRIES) return MAX_SCALED_ENTRIES;
  return Math.max(scaled, settings.min ?? 0);
}

/** Number of CPUs in the kernel's list format (`0-3,8`); 0 when it does not parse. */
export function countCPUs(list: string): number {
  let count = 0;
  for (const part of list.trim().split(',')) {
    const range = /^(\d+)(?:-(\d+))?$/.exec(part);
    if (!range) return 0;
    const first = Number(range[1]);
    count += Number(range[2] ?? first) - first + 1;
  }
  return count;
}

function onlineCPUs(files: SystemFiles, logger: Logger): number {
  try {
    const count = countCPUs(files.read(ONLINE_CPUS));
    if (count > 0) return count;
  } catch (error) {
    logger.v(2).info('Cannot read the online CPUs, using those visible to the process', {
      path: ONLINE_CPUS,
      err: error,
    });
  }
  return availableParallelism();
}

function setTableSize(max: number, files: SystemFiles, logger: Logger): void {
  ensure(sysctlPath('nf_conntrack_max'), max, files, logger);
  let current: number;
  try {
    current = Number(files.read(HASH_SIZE).trim());
  } catch (error) {
    throw new TuningError(`can't read ${HASH_SIZE}`, error);
  }
  const wanted = Math.floor(max / 4);
  if (current >= wanted) return;
  logger.info('Setting conntrack hashsize', { conntrackHashsize: wanted });
  write(HASH_SIZE, wanted, files);
}

function setTimeoutSeconds(sysctl: string, timeout: bigint | null, files: SystemFiles, logger: Logger): void {
  if (timeout === null || timeout <= 0n) return;
  const seconds = timeout / SECOND;
  if (seconds === 0n) {
    logger.info('A conntrack timeout below one second is written as 0', {
      sysctl,
      value: formatDuration(timeout),
    });
  }
  ensure(sysctlPath(sysctl), Number(seconds), files, logger);
}

function sysctlPath(name: string): string {
  return `/proc/sys/net/netfilter/${name}`;
}

function ensure(path: string, value: number, files: SystemFiles, logger: Logger): void {
  try {
    if (Number(files.read(path).trim()) === value) return;
  } catch (error) {
    // An unreadable value counts as different: the write below then says what is wrong.
    logger.v(4).info('Cannot read a sysctl before setting it', { path, err: error });
  }
  logger.info('Set sysctl', { entry: path.slice('/proc/sys/'.length), value });
  write(path, value, files);
}

function write(path: string, value: number, files: SystemFiles): void {
  try {
    files.write(path, String(value));
  } catch (error) {
    throw new TuningError(`can't set ${path} to ${value}`, error);
  }
}
