import { bitsOf, formatIP, type IP, parseIP } from '../../model/ip.ts';
import { nameOf, protocolNumbers, protocolsByTool } from '../numbers.ts';
import type { SetType } from './objects.ts';

/**
 * A parsed entry. Entries are compared as text, in the form of the program `ipset` but with canonical IPv6 addresses:
 * `10.96.0.1`, `10.96.0.1,tcp:80`, `10.0.0.1,tcp:80,10.0.0.1`, `10.0.0.1,tcp:80,192.0.2.0/24`, `30080`. A network
 * of one address has no prefix length.
 */
export interface SetEntry {
  readonly ip?: IP;
  /** Present together with `port`, except in sets of ports. */
  readonly protocol?: number;
  readonly port?: number;
  readonly ip2?: IP;
  /** Prefix length of `ip2`. */
  readonly prefix2?: number;
}

/** An entry that does not fit its set. */
export class SetEntryError extends Error {
  readonly code = 'ERR_IPSET_ENTRY';

  constructor(entry: string, type: SetType, problem: string) {
    super(`entry ${JSON.stringify(entry)} of a set of type ${type}: ${problem}`);
    this.name = 'SetEntryError';
  }
}

/** Reads an entry of a set of this type. Throws SetEntryError. */
export function parseEntry(text: string, type: SetType): SetEntry {
  const fail = (problem: string): never => {
    throw new SetEntryError(text, type, problem);
  };
  if (type === 'bitmap:port') return { port: parsePort(text) ?? fail('invalid port') };
  const [first = '', second, third, ...rest] = text.split(',');
  const wanted = type.split(',').length;
  const found = second === undefined ? 1 : third === undefined ? 2 : 3 + rest.length;
  if (found !== wanted) return fail(`has ${found} parts, expected ${wanted}`);
  const ip = parseIP(first) ?? fail('invalid address');
  if (second === undefined) return { ip };
  const [protocolText = '', portText = ''] = second.split(':', 2);
  const protocol = parseProtocol(protocolText) ?? fail('unknown protocol');
  const port = parsePort(portText) ?? fail('invalid port');
  if (third === undefined) return { ip, protocol, port };
  const slash = type === 'hash:ip,port,net' ? third.indexOf('/') : -1;
  const ip2 = parseIP(slash < 0 ? third : third.slice(0, slash)) ?? fail('invalid second address');
  if (type !== 'hash:ip,port,net') return { ip, protocol, port, ip2 };
  const bits = bitsOf(ip2.family);
  const prefix2 = slash < 0 ? bits : parseNumber(third.slice(slash + 1), bits);
  // The kernel does not support prefix length 0 in these sets.
  return { ip, protocol, port, ip2, prefix2: prefix2 || fail('invalid prefix length') };
}

/** Canonical text; the reverse of `parseEntry`. */
export function formatEntry({ ip, protocol, port, ip2, prefix2 }: SetEntry): string {
  const parts: string[] = [];
  if (ip) parts.push(formatIP(ip));
  if (port !== undefined)
    parts.push(protocol === undefined ? `${port}` : `${formatProtocol(protocol)}:${port}`);
  if (ip2) parts.push(formatIP(ip2) + prefixText(ip2, prefix2));
  return parts.join(',');
}

/** The text that the kernel lists for an entry: canonical addresses, no full-length prefix, host bits cleared. */
export function canonicalEntry(text: string, type: SetType): string {
  const entry = parseEntry(text, type);
  const { ip2, prefix2 } = entry;
  if (!ip2 || prefix2 === undefined) return formatEntry(entry);
  return formatEntry({ ...entry, ip2: { ...ip2, bytes: networkOf(ip2.bytes, prefix2) } });
}

function networkOf(bytes: Uint8Array, prefix: number): Uint8Array {
  return bytes.map((byte, i) => byte & (0xff << (8 - Math.min(8, Math.max(0, prefix - i * 8)))));
}

function prefixText(ip: IP, prefix: number | undefined): string {
  return prefix === undefined || prefix === bitsOf(ip.family) ? '' : `/${prefix}`;
}

function formatProtocol(number: number): string {
  return nameOf(protocolNumbers, number)?.toLowerCase() ?? `${number}`;
}

function parseProtocol(text: string): number | undefined {
  return protocolsByTool.get(text) ?? (parseNumber(text, 255) || undefined);
}

function parsePort(text: string): number | undefined {
  return parseNumber(text, 0xffff);
}

function parseNumber(text: string, max: number): number | undefined {
  if (!/^\d{1,5}$/.test(text)) return undefined;
  const value = Number(text);
  return value <= max ? value : undefined;
}
