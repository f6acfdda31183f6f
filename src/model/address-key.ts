import { type Family, formatIP, type IP, parseIP } from './ip.ts';

/**
 * An address as a key of maps, cheaper to make than its text: IPv4 is a number, IPv6 a string of eight characters, one
 * for each 16 bits.
 */
export type AddressKey = number | string;

export function addressKeyOf({ family, bytes }: IP): AddressKey {
  return family === 'IPv4' ? ipv4Key(bytes) : ipv6Key(bytes, 0);
}

/** The key of an address text; undefined when it does not parse. */
export function addressKeyFrom(text: string): AddressKey | undefined {
  const ip = parseIP(text);
  return ip && addressKeyOf(ip);
}

/** The key of the 16 bytes at an offset. */
export function ipv6Key(bytes: Uint8Array, at: number): string {
  const unit = (i: number) => ((bytes[at + i] ?? 0) << 8) | (bytes[at + i + 1] ?? 0);
  return String.fromCharCode(unit(0), unit(2), unit(4), unit(6), unit(8), unit(10), unit(12), unit(14));
}

export function familyOfKey(key: AddressKey): Family {
  return typeof key === 'number' ? 'IPv4' : 'IPv6';
}

/** The bytes of the address, in network order. */
export function keyBytes(key: AddressKey): Uint8Array {
  if (typeof key === 'number') return Uint8Array.of(key >>> 24, key >>> 16, key >>> 8, key);
  return Uint8Array.from({ length: 16 }, (_, i) => {
    const unit = key.charCodeAt(i >> 1);
    return i % 2 === 0 ? unit >> 8 : unit & 0xff;
  });
}

/** Canonical text of the address. */
export function keyText(key: AddressKey): string {
  if (typeof key === 'number') {
    return `${key >>> 24}.${(key >>> 16) & 0xff}.${(key >>> 8) & 0xff}.${key & 0xff}`;
  }
  return formatIP({ family: 'IPv6', bytes: keyBytes(key) });
}

function ipv4Key(bytes: Uint8Array): number {
  const [a = 0, b = 0, c = 0, d = 0] = bytes;
  return ((a << 24) | (b << 16) | (c << 8) | d) >>> 0;
}
