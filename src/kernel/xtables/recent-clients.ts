import { formatIP, type IP, parseIP } from '../../model/ip.ts';
import { tickRate } from '../../native/tick-rate.ts';
import type { SystemFiles } from '../system-files.ts';

const directory = '/proc/net/xt_recent';
/** The kernel's tick counter starts as if the machine had booted this long before an overflow of 32 bits. */
const secondsBeforeOverflow = 300;

/** Clients that the match `recent` of iptables rules remembers. */
export interface RecentClients {
  /** Seconds since an address was last seen; undefined when the list does not have it or cannot be read. */
  secondsSince(list: string, address: IP): number | undefined;
}

/** `uptime`: seconds since the boot, without the time in suspend. */
export async function openRecentClients(
  files: Pick<SystemFiles, 'read'>,
  uptime: () => number = () => Number(process.hrtime.bigint()) / 1e9,
): Promise<RecentClients> {
  return recentClients(files, await tickRate(), uptime);
}

export function recentClients(
  files: Pick<SystemFiles, 'read'>,
  ticksPerSecond: number,
  uptime: () => number,
): RecentClients {
  return {
    secondsSince(list, address) {
      const ticks = lastSeen(readList(files, list), formatIP(address));
      if (ticks === undefined) return undefined;
      const seenAt = (ticks - 2 ** 32) / ticksPerSecond + secondsBeforeOverflow;
      return Math.max(0, uptime() - seenAt);
    },
  };
}

function readList(files: Pick<SystemFiles, 'read'>, list: string): string {
  if (list.includes('/')) return '';
  try {
    return files.read(`${directory}/${list}`);
  } catch {
    // A list exists while a rule names it.
    return '';
  }
}

/** Finds a line such as `src=10.0.0.1 ttl: 64 last_seen: 4295412345 oldest_pkt: 1 4295412345`. */
function lastSeen(text: string, address: string): number | undefined {
  for (const [, source = '', ticks = ''] of text.matchAll(/^src=(\S+) .*?last_seen: (\d+)/gm)) {
    const ip = parseIP(source);
    if (ip && formatIP(ip) === address) return Number(ticks);
  }
  return undefined;
}
