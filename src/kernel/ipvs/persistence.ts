import { formatIP, parseIP } from '../../model/ip.ts';
import type { Protocol } from '../../model/objects.ts';
import type { SystemFiles } from '../system-files.ts';

/** All connections and persistence templates as text. */
const path = '/proc/net/ip_vs_conn';

/** Where a persistent virtual server sends a client, and for how long. */
export interface Persistence {
  /** Address and port of the real server. */
  readonly address: string;
  readonly port: number;
  readonly secondsLeft: number;
}

/** A client and the virtual server that it calls. */
export interface PersistentCall {
  readonly protocol: Protocol;
  readonly client: string;
  readonly address: string;
  readonly port: number;
}

/** The persistence template of a client; undefined when there is none or the file cannot be read. */
export function readPersistence(
  files: Pick<SystemFiles, 'read'>,
  call: PersistentCall,
): Persistence | undefined {
  try {
    return findPersistence(files.read(path), call);
  } catch {
    return undefined;
  }
}

/**
 * Finds a line such as `TCP 0A000001 0000 0A600001 0050 0AF40115 1F90 NONE        10799`: in a template the port of the
 * client is 0.
 */
export function findPersistence(text: string, call: PersistentCall): Persistence | undefined {
  for (const line of text.split('\n')) {
    const [
      protocol,
      client = '',
      clientPort,
      virtual = '',
      virtualPort = '',
      real = '',
      realPort = '',
      ,
      left,
    ] = line.trim().split(/\s+/);
    if (clientPort !== '0000' || protocol !== call.protocol) continue;
    if (Number.parseInt(virtualPort, 16) !== call.port) continue;
    if (addressOf(client) !== call.client || addressOf(virtual) !== call.address) continue;
    const address = addressOf(real);
    if (address === undefined) continue;
    return { address, port: Number.parseInt(realPort, 16), secondsLeft: Number(left) };
  }
  return undefined;
}

/** Eight hexadecimal digits, or an IPv6 address that is written out. */
function addressOf(text: string): string | undefined {
  if (/^[0-9A-F]{8}$/.test(text)) return formatIP({ family: 'IPv4', bytes: Buffer.from(text, 'hex') });
  const ip = parseIP(text.replace(/^\[(.*)\]$/, '$1'));
  return ip && formatIP(ip);
}
