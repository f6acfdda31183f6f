import type { SystemFiles } from './system-files.ts';

const STATUS = '/proc/self/status';
const CAP_NET_ADMIN = 12n;

/** Whether this process has CAP_NET_ADMIN. Returns true when /proc cannot be read: the first write then shows it. */
export function hasNetAdmin(files: Pick<SystemFiles, 'read'>): boolean {
  let status: string;
  try {
    status = files.read(STATUS);
  } catch {
    return true;
  }
  const mask = /^CapEff:\s*([0-9a-f]+)$/m.exec(status)?.[1];
  return mask === undefined || ((BigInt(`0x${mask}`) >> CAP_NET_ADMIN) & 1n) === 1n;
}
