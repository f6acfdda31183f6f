import { createReadStream } from 'node:fs';
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

/** A persistence template: a client, the virtual server that it called, and where it goes again. */
export interface PersistenceTemplate extends Persistence {
  readonly call: PersistentCall;
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

/** All persistence templates of this network namespace. The file may have millions of connections besides. */
export async function* readTemplates(): AsyncGenerator<PersistenceTemplate> {
  let rest = '';
  for await (const piece of createReadStream(path, 'latin1')) {
    const lines = `${rest}${piece}`.split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) {
      const template = templateOf(line);
      if (template) yield template;
    }
  }
}

export function findPersistence(text: string, wanted: PersistentCall): Persistence | undefined {
  for (const line of text.split('\n')) {
    const template = templateOf(line);
    if (!template) continue;
    const { call, ...persistence } = template;
    if (call.protocol !== wanted.protocol || call.port !== wanted.port) continue;
    if (call.client === wanted.client && call.address === wanted.address) return persistence;
  }
  return undefined;
}

/**
 * Reads a line such as `TCP 0A000001 0000 0A600001 0050 0AF40115 1F90 NONE        10799`; undefined for a connection: in a
 * template the port of the client is 0.
 */
function templateOf(line: string): PersistenceTemplate | undefined {
  const [
    protocol,
    client = '',
    clientPort,
    virtual = '',
    virtualPort = '',
    real = '',
    realPort = '',
    ,
    left = '',
  ] = line.trim().split(/\s+/);
  if (clientPort !== '0000' || !isProtocol(protocol)) return undefined;
  const [from, to, address] = [client, virtual, real].map(addressOf);
  if (from === undefined || to === undefined || address === undefined) return undefined;
  return {
    call: { protocol, client: from, address: to, port: Number.parseInt(virtualPort, 16) },
    address,
    port: Number.parseInt(realPort, 16),
    secondsLeft: Number(left),
  };
}

function isProtocol(text: string | undefined): text is Protocol {
  return text === 'TCP' || text === 'UDP' || text === 'SCTP';
}

/** Eight hexadecimal digits, or an IPv6 address that is written out. */
function addressOf(text: string): string | undefined {
  if (/^[0-9A-F]{8}$/.test(text)) return formatIP({ family: 'IPv4', bytes: Buffer.from(text, 'hex') });
  const ip = parseIP(text.replace(/^\[(.*)\]$/, '$1'));
  return ip && formatIP(ip);
}
