import { readFile } from 'node:fs/promises';
import { formatIP, parseIP } from '../../model/ip.ts';
import { formatVirtualServer, type RealServer } from './objects.ts';

/** All virtual servers and their real servers as text. */
const path = '/proc/net/ip_vs';

const protocols = { TCP: 'TCP', UDP: 'UDP', SCTP: 'SCTP' } as const;

/**
 * The real servers of every virtual server, by its `formatVirtualServer`; undefined when the file cannot be read. One
 * netlink dump per virtual server takes twenty times as long.
 */
export async function readRealServerTable(): Promise<ReadonlyMap<string, readonly RealServer[]> | undefined> {
  try {
    return parseRealServerTable(await readFile(path, 'latin1'));
  } catch {
    return undefined;
  }
}

/**
 * Reads lines such as `TCP  0A600001:0050 rr ` and, after each, `  -> 0A000001:1F90      Masq    1      0          0`;
 * IPv6 addresses are written out in brackets. Skips virtual servers for firewall marks and other protocols.
 */
export function parseRealServerTable(text: string): Map<string, RealServer[]> {
  const table = new Map<string, RealServer[]>();
  let reals: RealServer[] | undefined;
  for (const line of text.split('\n')) {
    const [first = '', place = '', , weight = ''] = line.trimStart().split(/\s+/, 4);
    if (first === '->') {
      const real = parsePlace(place);
      if (reals && real && /^\d+$/.test(weight)) reals.push({ ...real, weight: Number(weight) });
      continue;
    }
    const protocol = protocols[first as keyof typeof protocols];
    const key = protocol && parsePlace(place);
    reals = key && [];
    if (key && reals) table.set(formatVirtualServer({ ...key, protocol }), reals);
  }
  return table;
}

/** Hexadecimal address and port. */
function parsePlace(text: string): { address: string; port: number } | undefined {
  const [, four, six, port = ''] = /^(?:([0-9A-F]{8})|\[([0-9a-f:]+)\]):([0-9A-F]{4})$/.exec(text) ?? [];
  const ip =
    four === undefined ? parseIP(six ?? '') : ({ family: 'IPv4', bytes: Buffer.from(four, 'hex') } as const);
  return ip && { address: formatIP(ip), port: Number.parseInt(port, 16) };
}
