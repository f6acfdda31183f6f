import { protocolNumbers } from '../kernel/numbers.ts';
import { type AddressKey, familyOfKey } from '../model/address-key.ts';
import type { Family } from '../model/ip.ts';

/** An address with a port, or with a port and a protocol, as a key of maps: a number for IPv4, a string for IPv6. */
export type PlaceKey = number | string;

/** Numbers of the protocols that service ports can have, as small numbers; 0 for any other. */
export function protocolRank(protocol: number): number {
  if (protocol === protocolNumbers.TCP) return 1;
  if (protocol === protocolNumbers.UDP) return 2;
  return protocol === protocolNumbers.SCTP ? 3 : 0;
}

/** The key of a destination; `rank` is that of its protocol. */
export function destinationKey(address: AddressKey, port: number, rank: number): PlaceKey {
  if (typeof address === 'number') return (address * 65_536 + port) * 4 + rank;
  return address + String.fromCharCode(port, rank);
}

/** The key of a node port, which is at many addresses: no destination has it. */
export function nodePortKey(family: Family, port: number, rank: number): PlaceKey {
  return family === 'IPv4' ? port * 4 + rank : String.fromCharCode(port, rank);
}

/** The key of an endpoint. */
export function endpointKey(address: AddressKey, port: number): PlaceKey {
  return typeof address === 'number' ? address * 65_536 + port : address + String.fromCharCode(port);
}

/** The address and port of an endpoint's key. */
export function endpointOf(key: PlaceKey): { readonly address: AddressKey; readonly port: number } {
  if (typeof key === 'string') return { address: key.slice(0, 8), port: key.charCodeAt(8) };
  return { address: Math.floor(key / 65_536), port: key % 65_536 };
}

/** Whether it is 127.0.0.0/8 or ::1. */
export function isLoopbackKey(address: AddressKey): boolean {
  if (familyOfKey(address) === 'IPv4') return Math.floor(Number(address) / 0x1_00_00_00) === 127;
  return address === '\0\0\0\0\0\0\0\u0001';
}
