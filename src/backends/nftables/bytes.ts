import { endianness } from 'node:os';
import { protocolNumbers } from '../../kernel/numbers.ts';
import { toIP } from '../../model/ip.ts';
import type { Protocol } from '../../model/objects.ts';

/**
 * Set keys and data as strings of one character per byte. They compare, hash and concatenate natively and take less
 * memory than a typed array each, which matters with a million of them.
 */
export type Bytes = string;

const hostIsLittle = endianness() === 'LE';

/** Network-order bytes of a canonical address: 4 or 16. */
export function addressBytes(ip: string): Bytes {
  return fromArray(toIP(ip).bytes);
}

/** An L4 protocol number, padded to a word. */
export function protocolBytes(protocol: Protocol): Bytes {
  return String.fromCharCode(protocolNumbers[protocol], 0, 0, 0);
}

/** A port in network order, padded to a word. */
export function portBytes(port: number): Bytes {
  return String.fromCharCode(port >> 8, port & 0xff, 0, 0);
}

/** A 32-bit number in host order. */
export function wordBytes(value: number): Bytes {
  const [high, middleHigh, middleLow, low] = [
    value >>> 24,
    (value >>> 16) & 0xff,
    (value >>> 8) & 0xff,
    value & 0xff,
  ];
  return hostIsLittle
    ? String.fromCharCode(low, middleLow, middleHigh, high)
    : String.fromCharCode(high, middleHigh, middleLow, low);
}

/** The number that `wordBytes` wrote at an offset. */
export function readWord(bytes: Bytes, at = 0): number {
  let word = 0;
  for (let i = 0; i < 4; i++) word = (word << 8) | bytes.charCodeAt(at + (hostIsLittle ? 3 - i : i));
  return word >>> 0;
}

export function toArray(bytes: Bytes): Uint8Array {
  // A small typed array lives in the heap and dies young; a Buffer is a view of memory outside of it.
  const array = new Uint8Array(bytes.length);
  for (let i = 0; i < bytes.length; i++) array[i] = bytes.charCodeAt(i);
  return array;
}

export function fromArray(array: Uint8Array): Bytes {
  // Faster than a Buffer for the few bytes that keys and data have.
  return Reflect.apply(String.fromCharCode, null, array);
}
