import { formatIP, type IP, parseIP } from '../model/ip.ts';
import { hostLittleEndian } from '../native/byte-order.ts';
import { AF_INET, AF_INET6 } from '../native/sockets.ts';

/** An address and a port. The address is canonical text. */
export interface SocketAddress {
  readonly ip: string;
  readonly port: number;
}

/** Sizes of the kernel's sockaddr structures. */
const lengths = { [AF_INET]: 16, [AF_INET6]: 28 } as const;

/** Enough for an address of either family. */
export const maxAddressBytes = 28;

/** Encodes an address as a sockaddr; throws if `ip` is not an IP address. */
export function encodeAddress({ ip, port }: SocketAddress): Uint8Array {
  const parsed = parseIP(ip);
  if (!parsed) throw new Error(`${JSON.stringify(ip)} is not an IP address`);
  const domain = domainOf(parsed);
  const bytes = new Uint8Array(lengths[domain]);
  const view = new DataView(bytes.buffer);
  view.setUint16(0, domain, hostLittleEndian);
  view.setUint16(2, port);
  bytes.set(parsed.bytes, domain === AF_INET ? 4 : 8);
  return bytes;
}

/** The address in a sockaddr, of 4 or 16 bytes. */
export function addressBytes(bytes: Uint8Array): Uint8Array {
  return domainOfBytes(bytes) === AF_INET ? bytes.subarray(4, 8) : bytes.subarray(8, 24);
}

/** The same address with port 0, for the kernel to choose one. */
export function withoutPort(bytes: Uint8Array): Uint8Array {
  const copy = bytes.slice();
  copy.fill(0, 2, 4);
  return copy;
}

/** The address family number of an encoded address. */
export function domainOfBytes(bytes: Uint8Array): number {
  return bytes.length === lengths[AF_INET] ? AF_INET : AF_INET6;
}

/** Decodes a sockaddr. */
export function decodeAddress(bytes: Uint8Array): SocketAddress {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  const isV4 = view.getUint16(0, hostLittleEndian) === AF_INET;
  const ip: IP = isV4
    ? { family: 'IPv4', bytes: bytes.slice(4, 8) }
    : { family: 'IPv6', bytes: bytes.slice(8, 24) };
  return { ip: formatIP(ip), port: view.getUint16(2) };
}

/** Returns a copy of the sockaddr in a larger buffer. */
export function trimAddress(bytes: Uint8Array): Uint8Array {
  const domain = new DataView(bytes.buffer, bytes.byteOffset).getUint16(0, hostLittleEndian);
  return bytes.slice(0, domain === AF_INET ? lengths[AF_INET] : lengths[AF_INET6]);
}

function domainOf(ip: IP): typeof AF_INET | typeof AF_INET6 {
  return ip.family === 'IPv4' ? AF_INET : AF_INET6;
}
