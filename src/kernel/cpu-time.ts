import type { SystemFiles } from './system-files.ts';

/** A clock tick of /proc in milliseconds, on every architecture. */
const tickMs = 10;

/**
 * Returns the CPU time in milliseconds of this process with all its threads, in user space and in the kernel, and of the
 * programs that it ran and that have ended.
 */
export function cpuMs(files: Pick<SystemFiles, 'read'>): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000 + childrenMs(files);
}

/** 0 when /proc cannot be read. */
function childrenMs(files: Pick<SystemFiles, 'read'>): number {
  try {
    const stat = files.read('/proc/self/stat');
    // From the third field on; the second, the command, may contain blanks. 16 and 17: see proc_pid_stat(5).
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return (Number(fields[16 - 3]) + Number(fields[17 - 3])) * tickMs;
  } catch {
    return 0;
  }
}
