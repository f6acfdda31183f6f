import { formatIP, type IP, parseIP } from '../../model/ip.ts';
import { tickRate } from '../../native/tick-rate.ts';
import type { SystemFiles } from '../system-files.ts';

const directory = '/proc/net/xt_recent';
/** The kernel's tick counter starts as if the machine had booted this long before an overflow of 32 bits. */
const secondsBeforeOverflow = 300;

/** A client in a list of the match `recent`. */
export interface RecentClient {
  /** Canonical. */
  readonly address: string;
  readonly secondsSince: number;
}

/** Clients that the match `recent` of iptables rules remembers. */
export interface RecentClients {
  /** Seconds since an address was last seen; undefined when the list does not have it or cannot be read. */
  secondsSince(list: string, address: IP): number | undefined;
  /** Everybody in a list, which has 100 clients unless the module was loaded with another `ip_list_tot`. */
  list(list: string): readonly RecentClient[];
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
  const secondsSince = (ticks: number) => {
    const seenAt = (ticks - 2 ** 32) / ticksPerSecond + secondsBeforeOverflow;
    return Math.max(0, uptime() - seenAt);
  };
  return {
    secondsSince(list, address) {
      const wanted = formatIP(address);
      for (const [found, ticks] of entriesOf(readList(files, list))) {
        if (found === wanted) return secondsSince(ticks);
      }
      return undefined;
    },
    list: (list) =>
      [...entriesOf(readList(files, list))].map(([address, ticks]) => ({
        address,
        secondsSince: secondsSince(ticks),
      })),
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

/** Reads lines such as `src=10.0.0.1 ttl: 64 last_seen: 4295412345 oldest_pkt: 1 4295412345`. */
function* entriesOf(text: string): Generator<[address: string, lastSeen: number]> {
  for (const [, source = '', ticks = ''] of text.matchAll(/^src=(\S+) .*?last_seen: (\d+)/gm)) {
    const ip = parseIP(source);
    if (ip) yield [formatIP(ip), Number(ticks)];
  }
}
