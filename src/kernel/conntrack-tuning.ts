import { availableParallelism } from 'node:os';
import { formatDuration, SECOND } from '../lib/duration.ts';
import { messageOf } from '../lib/thrown.ts';
import type { Logger } from '../obs/log.ts';
import { Sysctl } from './sysctl.ts';
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

/** The most entries that scaling with the number of cores gives. */
const MAX_SCALED_ENTRIES = 1_048_576;

const ONLINE_CPUS = '/sys/devices/system/cpu/online';
const HASH_SIZE = '/sys/module/nf_conntrack/parameters/hashsize';

/**
 * Sets the size of the kernel's connection tracking table and its timeouts. Writes only values that differ, so /proc/sys
 * may be read-only when nothing is to change. Throws an error that names the setting when a write fails.
 */
export function tuneConntrack(settings: ConntrackSettings, files: SystemFiles, logger: Logger): void {
  const sysctl = new Sysctl(files);
  const ensure = (name: string, value: number) => {
    const entry = `net/netfilter/${name}`;
    if (sysctl.ensure(entry, value)) logger.info('Set sysctl', { entry, value });
  };
  const ensureTimeout = (name: string, timeout: bigint | null) => {
    if (timeout === null || timeout <= 0n) return;
    if (timeout < SECOND) {
      const value = formatDuration(timeout);
      logger.info('A conntrack timeout below one second is written as 0', { sysctl: name, value });
    }
    ensure(name, Number(timeout / SECOND));
  };
  const max = tableSize(settings, () => onlineCPUs(files, logger));
  if (max > 0) {
    ensure('nf_conntrack_max', max);
    raiseHashSize(Math.floor(max / 4), files, logger);
  }
  ensureTimeout('nf_conntrack_tcp_timeout_established', settings.tcpEstablishedTimeout);
  ensureTimeout('nf_conntrack_tcp_timeout_close_wait', settings.tcpCloseWaitTimeout);
  if (settings.tcpBeLiberal) ensure('nf_conntrack_tcp_be_liberal', 1);
  ensureTimeout('nf_conntrack_udp_timeout', settings.udpTimeout);
  ensureTimeout('nf_conntrack_udp_timeout_stream', settings.udpStreamTimeout);
}

/** The number of entries to set; 0 leaves the table alone. `min` has no effect once scaling reaches the cap. */
export function tableSize(
  settings: Pick<ConntrackSettings, 'maxPerCore' | 'min'>,
  cpus: () => number,
): number {
  if (settings.maxPerCore === null || settings.maxPerCore <= 0) return 0;
  const scaled = settings.maxPerCore * cpus();
  if (scaled > MAX_SCALED_ENTRIES) return MAX_SCALED_ENTRIES;
  return Math.max(scaled, settings.min ?? 0);
}

/** Counts the CPUs of a list in the kernel's format (`0-3,8`); returns 0 when it does not parse. */
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

/** Enlarges the hash table, which is a module parameter and not a sysctl. Never shrinks it. */
function raiseHashSize(wanted: number, files: SystemFiles, logger: Logger): void {
  try {
    if (Number(files.read(HASH_SIZE).trim()) >= wanted) return;
    logger.info('Setting conntrack hashsize', { conntrackHashsize: wanted });
    files.write(HASH_SIZE, String(wanted));
  } catch (error) {
    throw new Error(`can't raise ${HASH_SIZE} to ${wanted}: ${messageOf(error)}`, { cause: error });
  }
}
