/** An IP family as Kubernetes spells it. */
export type Family = 'IPv4' | 'IPv6';

export const families: readonly Family[] = ['IPv4', 'IPv6'];

/** A parsed address: 4 bytes for IPv4 (IPv4-mapped IPv6 text included), 16 for IPv6, network order. */
export interface IP {
  readonly family: Family;
  readonly bytes: Uint8Array;
}

/** An address prefix with its host bits cleared. */
export interface CIDR {
  readonly family: Family;
  readonly bytes: Uint8Array;
  readonly prefix: number;
}

/** Parses what Kubernetes accepts as an address: leading zeros in IPv4 octets are decimal, zones are refused. */
export function parseIP(text: string): IP | undefined {
  if (!text.includes(':')) {
    const bytes = new Uint8Array(4);
    return readIPv4(text, bytes) ? { family: 'IPv4', bytes } : undefined;
  }
  const bytes = readIPv6(text);
  if (!bytes) return undefined;
  return isMappedIPv4(bytes) ? { family: 'IPv4', bytes: bytes.slice(12) } : { family: 'IPv6', bytes };
}

/** Parses an address; throws RangeError when it is invalid. */
export function toIP(text: string): IP {
  const ip = parseIP(text);
  if (!ip) throw new RangeError(`${JSON.stringify(text)} is not an IP address`);
  return ip;
}

/** Parses `address/prefix`; host bits may be set and are cleared, as in Go's net.ParseCIDR. */
export function parseCIDR(text: string): CIDR | undefined {
  const slash = text.indexOf('/');
  if (slash < 0 || !/^[0-9]+$/.test(text.slice(slash + 1))) return undefined;
  const address = text.slice(0, slash);
  const ip = parseIP(address);
  if (!ip) return undefined;
  const prefix = Number(text.slice(slash + 1));
  // "::ffff:1.2.3.4/120" counts its prefix over 128 bits although it is an IPv4 address.
  if (ip.family === 'IPv4' && address.includes(':')) return mappedCIDR(ip, prefix);
  if (prefix > bitsOf(ip.family)) return undefined;
  return { family: ip.family, bytes: maskBytes(ip.bytes, prefix), prefix };
}

/** The CIDR of an IPv4-mapped IPv6 address: IPv4 from /96 on, IPv6 with a shorter prefix. */
function mappedCIDR(ip: IP, prefix: number): CIDR | undefined {
  if (prefix > 128) return undefined;
  if (prefix >= 96) return { family: 'IPv4', bytes: maskBytes(ip.bytes, prefix - 96), prefix: prefix - 96 };
  const bytes = new Uint8Array(16).fill(0xff, 10, 12);
  return { family: 'IPv6', bytes: maskBytes(bytes, prefix), prefix };
}

/** Canonical text of an address: dotted decimal, or RFC 5952 lower case. */
export function formatIP(ip: IP): string {
  return ip.family === 'IPv4' ? ip.bytes.join('.') : formatIPv6(ip.bytes);
}

export function formatCIDR(cidr: CIDR): string {
  return `${formatIP(cidr)}/${cidr.prefix}`;
}

/** Canonical text of an address in any accepted form; undefined when it does not parse. */
export function canonicalIP(text: string): string | undefined {
  if (readIPv4(text, undefined, true)) return text;
  const ip = parseIP(text);
  if (!ip) return undefined;
  const canonical = formatIP(ip);
  // The same string if possible: callers that keep both then keep one.
  return canonical === text ? text : canonical;
}

/** Like `canonicalIP`, but undefined for an address of the other family. */
export function canonicalIPOf(family: Family, text: string): string | undefined {
  const canonical = canonicalIP(text);
  // Canonical IPv6 text always has a colon, canonical IPv4 text never.
  return canonical?.includes(':') === (family === 'IPv6') ? canonical : undefined;
}

/** The family of an address text; undefined when it does not parse. */
export function familyOf(text: string): Family | undefined {
  return parseIP(text)?.family;
}

export function otherFamily(family: Family): Family {
  return family === 'IPv4' ? 'IPv6' : 'IPv4';
}

export function bitsOf(family: Family): number {
  return family === 'IPv4' ? 32 : 128;
}

/** Whether it is in fe80::/10, which is valid on one link only. IPv4 link-local addresses do not count. */
export function isLinkLocalIPv6(text: string): boolean {
  const ip = parseIP(text);
  const [first = 0, second = 0] = ip?.bytes ?? [];
  return ip?.family === 'IPv6' && first === 0xfe && (second & 0xc0) === 0x80;
}

export function isLoopback(ip: IP): boolean {
  if (ip.family === 'IPv4') return ip.bytes[0] === 127;
  return ip.bytes[15] === 1 && ip.bytes.subarray(0, 15).every((b) => b === 0);
}

/** True for 0.0.0.0 and :: */
export function isUnspecified(ip: IP): boolean {
  return ip.bytes.every((b) => b === 0);
}

export function cidrContains(cidr: CIDR, ip: IP): boolean {
  if (cidr.family !== ip.family) return false;
  return sameBytes(maskBytes(ip.bytes, cidr.prefix), cidr.bytes);
}

/** `ip:port`, with brackets around IPv6. */
export function joinHostPort(host: string, port: number | string): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
}

/** The reverse of joinHostPort for an address; undefined for anything else. */
export function splitIPPort(text: string): { readonly ip: IP; readonly port: number } | undefined {
  const colon = text.lastIndexOf(':');
  const ip = parseIP(text.slice(0, colon).replace(/^\[(.*)\]$/, '$1'));
  return ip && { ip, port: Number(text.slice(colon + 1)) };
}

function sameBytes(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && a.every((byte, i) => byte === b[i]);
}

function maskBytes(bytes: Uint8Array, prefix: number): Uint8Array {
  return bytes.map((byte, i) => {
    const bits = Math.min(8, Math.max(0, prefix - i * 8));
    return byte & (0xff << (8 - bits));
  });
}

function isMappedIPv4(bytes: Uint8Array): boolean {
  return bytes[10] === 0xff && bytes[11] === 0xff && bytes.subarray(0, 10).every((b) => b === 0);
}

const dot = 0x2e;
const zero = 0x30;

/**
 * Reads dotted decimal; `strict` refuses leading zeros. Without split and regular expressions, because it runs for
 * every address of every slice.
 */
function readIPv4(text: string, into?: Uint8Array, strict = false): boolean {
  let octet = 0;
  let digits = 0;
  let value = 0;
  for (let i = 0; i <= text.length; i++) {
    const code = i < text.length ? text.charCodeAt(i) : dot;
    if (code === dot) {
      if (digits === 0 || octet > 3) return false;
      if (into) into[octet] = value;
      octet++;
      digits = value = 0;
    } else {
      if (code < zero || code > zero + 9 || (strict && digits > 0 && value === 0)) return false;
      value = value * 10 + code - zero;
      digits++;
      if (value > 255) return false;
    }
  }
  return octet === 4;
}

function readIPv6(text: string): Uint8Array | undefined {
  const halves = text.split('::');
  if (halves.length > 2) return undefined;
  const head = readGroups(halves[0] ?? '', halves.length === 1);
  const tail = halves.length === 2 ? readGroups(halves[1] ?? '', true) : [];
  if (!head || !tail) return undefined;
  const length = head.length + tail.length;
  if (halves.length === 1 ? length !== 16 : length > 14) return undefined;
  const bytes = new Uint8Array(16);
  bytes.set(head, 0);
  bytes.set(tail, 16 - tail.length);
  return bytes;
}

/** Reads colon-separated groups; the last group of the whole text may be an IPv4 address. */
function readGroups(text: string, isEnd: boolean): number[] | undefined {
  if (text === '') return [];
  const bytes: number[] = [];
  const groups = text.split(':');
  for (const [i, group] of groups.entries()) {
    if (isEnd && i === groups.length - 1 && group.includes('.')) {
      const v4 = new Uint8Array(4);
      if (!readIPv4(group, v4)) return undefined;
      bytes.push(...v4);
    } else {
      // Any number of leading zeros, as Kubernetes accepts.
      if (!/^0*[0-9a-fA-F]{1,4}$/.test(group)) return undefined;
      const value = Number.parseInt(group, 16);
      bytes.push(value >> 8, value & 0xff);
    }
  }
  return bytes;
}

function formatIPv6(bytes: Uint8Array): string {
  const groups = Array.from({ length: 8 }, (_, i) => ((bytes[2 * i] ?? 0) << 8) | (bytes[2 * i + 1] ?? 0));
  const [start, length] = longestZeroRun(groups);
  const hex = groups.map((g) => g.toString(16));
  if (length < 2) return hex.join(':');
  return `${hex.slice(0, start).join(':')}::${hex.slice(start + length).join(':')}`;
}

function longestZeroRun(groups: readonly number[]): [start: number, length: number] {
  let best: [number, number] = [0, 0];
  for (let i = 0; i < groups.length; i++) {
    let end = i;
    while (end < groups.length && groups[end] === 0) end++;
    if (end - i > best[1]) best = [i, end - i];
    i = Math.max(i, end - 1);
  }
  return best;
}

/** The address that follows; undefined after the last one of the family. */
export function addressAfter(address: Uint8Array): Uint8Array | undefined {
  const next = address.slice();
  for (let i = next.length - 1; i >= 0; i--) {
    const byte = (next[i] ?? 0) + 1;
    next[i] = byte & 0xff;
    if (byte < 256) return next;
  }
  return undefined;
}
