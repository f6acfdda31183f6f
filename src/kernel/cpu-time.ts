import type { SystemFiles } from './system-files.ts';

/** A clock tick of /proc in milliseconds, on every architecture. */
const tickMs = 10;

/**
 * Returns the CPU time in milliseconds of this process with all its threads, in user space and in the kernel, and of the
 * programs that it ran and that have ended. Undefined when /proc cannot be read, as while no file can be opened: a
 * figure without the programs cannot be compared with earlier ones.
 */
export function cpuMs(files: Pick<SystemFiles, 'read'>): number | undefined {
  const children = childrenMs(files);
  if (children === undefined) return undefined;
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000 + children;
}

function childrenMs(files: Pick<SystemFiles, 'read'>): number | undefined {
  let stat: string;
  try {
    stat = files.read('/proc/self/stat');
  } catch {
    return undefined;
  }
  // From the third field on; the second, the command, may contain blanks. 16 and 17: see proc_pid_stat(5).
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const ticks = Number(fields[16 - 3]) + Number(fields[17 - 3]);
  return Number.isFinite(ticks) ? ticks * tickMs : undefined;
}
