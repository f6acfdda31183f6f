import { addressFamilies, protocolNumbers } from '../../numbers.ts';
import { type Bits, knownBytes, slice, unknownBytes } from './known-bits.ts';

/** What is known about the first packet of a connection while it passes the chains of one hook. */
export interface PacketView {
  /** L4 protocol number. */
  readonly protocol: number;
  /** Network order. Undefined while it is not known, as after a masquerade. */
  readonly source: Uint8Array | undefined;
  readonly destination: Uint8Array;
  /** The destination port; undefined when it is not known. */
  readonly port: number | undefined;
  /** Interface names: empty when not known, undefined when the packet has none at this hook. */
  readonly input: string | undefined;
  readonly output: string | undefined;
  /** Conntrack reports that the destination was rewritten. */
  readonly isRewritten: boolean;
}

const ethertypes = { ip: [0x08, 0x00], ip6: [0x86, 0xdd] } as const;
const synFlag = 0x02;
/** All flags of TCP but those of congestion notification, which a sender may add to the first packet. */
const knownTCPFlags = 0x3f;

export function isIPv4({ destination }: PacketView): boolean {
  return destination.length === 4;
}

/** AF_INET or AF_INET6. */
export function familyNumber(view: PacketView): number {
  return isIPv4(view) ? addressFamilies.IPv4 : addressFamilies.IPv6;
}

export function ethertype(view: PacketView): Bits {
  return knownBytes(Uint8Array.from(isIPv4(view) ? ethertypes.ip : ethertypes.ip6));
}

/** Bytes of the network header. */
export function networkHeader(view: PacketView, offset: number, length: number): Bits {
  return part(isIPv4(view) ? headerOfIPv4(view) : headerOfIPv6(view), offset, length);
}

/** Bytes of the transport header. */
export function transportHeader({ protocol, port }: PacketView, offset: number, length: number): Bits {
  const header = unknownBytes(20);
  if (port !== undefined) put(header, 2, [port >> 8, port & 0xff]);
  if (protocol === protocolNumbers.TCP) put(header, 13, [synFlag], [knownTCPFlags]);
  return part(header, offset, length);
}

function headerOfIPv4({ protocol, source, destination }: PacketView): Bits {
  const header = unknownBytes(20);
  put(header, 0, [0x45]);
  // Not a fragment; whether it may become one is not known.
  put(header, 6, [0, 0], [0xbf, 0xff]);
  put(header, 9, [protocol]);
  if (source) put(header, 12, source);
  put(header, 16, destination);
  return header;
}

function headerOfIPv6({ protocol, source, destination }: PacketView): Bits {
  const header = unknownBytes(40);
  put(header, 0, [0x60], [0xf0]);
  put(header, 6, [protocol]);
  if (source) put(header, 8, source);
  put(header, 24, destination);
  return header;
}

function put({ value, known }: Bits, at: number, bytes: ArrayLike<number>, mask?: ArrayLike<number>): void {
  value.set(bytes, at);
  known.set(mask ?? new Uint8Array(bytes.length).fill(0xff), at);
}

function part(header: Bits, offset: number, length: number): Bits {
  const isInside = offset >= 0 && offset + length <= header.value.length;
  return isInside ? slice(header, offset, offset + length) : unknownBytes(length);
}
