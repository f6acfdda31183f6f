import { concatUserdata, userdataU32 } from './userdata.ts';

/**
 * One field of a set's key or data. The kernel uses only the length. It stores type numbers and the `typeof` description
 * for nft, which needs them to print elements. nft prints a set in typeof form when all fields have a `typeof`, which is
 * the only form for a field without a type name, such as a random number.
 */
export interface Field {
  /** As nft writes it: `ipv4_addr`, or `ip daddr` in typeof form. */
  readonly name: string;
  /** nft's datatype number. */
  readonly type: number;
  readonly length: number;
  readonly byteOrder: ByteOrder;
  /** The described expression in nft's user-data form; absent for plain types. */
  readonly typeof?: Uint8Array;
}

export type ByteOrder = 'unspecified' | 'host' | 'network';

/** Fields of sets declared with `type`. */
export const types = {
  ipv4Addr: { name: 'ipv4_addr', type: 7, length: 4, byteOrder: 'network' },
  ipv6Addr: { name: 'ipv6_addr', type: 8, length: 16, byteOrder: 'network' },
  inetProto: { name: 'inet_proto', type: 12, length: 1, byteOrder: 'unspecified' },
  inetService: { name: 'inet_service', type: 13, length: 2, byteOrder: 'network' },
  mark: { name: 'mark', type: 19, length: 4, byteOrder: 'host' },
  classid: { name: 'classid', type: 23, length: 4, byteOrder: 'host' },
  ctDirection: { name: 'ct_dir', type: 27, length: 1, byteOrder: 'host' },
  ifname: { name: 'ifname', type: 41, length: 16, byteOrder: 'host' },
} as const satisfies Record<string, Field>;

/** Fields of sets declared with `typeof`. */
export const typeOf = {
  ipSaddr: payload('ip saddr', types.ipv4Addr, 12, 11),
  ipDaddr: payload('ip daddr', types.ipv4Addr, 12, 12),
  ip6Saddr: payload('ip6 saddr', types.ipv6Addr, 13, 8),
  ip6Daddr: payload('ip6 daddr', types.ipv6Addr, 13, 9),
  thDport: payload('th dport', types.inetService, 11, 2),
  l4proto: meta('meta l4proto', { ...types.inetProto, byteOrder: 'host' }, 16),
  mark: meta('meta mark', types.mark, 3),
  priority: meta('meta priority', types.classid, 2),
  iifname: meta('iifname', types.ifname, 6),
  numgenRandom,
};

/** A random number, 4 bytes in host order. nft prints the modulus but does not check elements against it. */
export function numgenRandom(modulus: number): Field {
  const data = concatUserdata([userdataU32(0, 1), userdataU32(1, modulus), userdataU32(2, 0)]);
  return {
    name: `numgen random mod ${modulus}`,
    type: 4,
    length: 4,
    byteOrder: 'host',
    typeof: typeofExpr(23, data),
  };
}

/** The length of a concatenation. Each of several fields is padded to 32-bit words; a single field is not. */
export function concatLength(fields: readonly Field[]): number {
  const [first] = fields;
  if (first && fields.length === 1) return first.length;
  return fields.reduce((sum, field) => sum + paddedLength(field.length), 0);
}

/** nft's number for a concatenation: six bits per field, the last field lowest. */
export function concatType(fields: readonly Field[]): number {
  return fields.reduce((type, field) => ((type << 6) | field.type) >>> 0, 0);
}

/** A 32-bit number as registers hold it: in host order. */
export function word(value: number): Uint8Array {
  return new Uint8Array(Uint32Array.of(value).buffer);
}

/** Joins field values into a key or data value, each padded to 32-bit words. */
export function concatValues(...values: readonly Uint8Array[]): Uint8Array {
  const [first] = values;
  if (first && values.length === 1) return first;
  const joined = new Uint8Array(values.reduce((sum, value) => sum + paddedLength(value.length), 0));
  let at = 0;
  for (const value of values) {
    joined.set(value, at);
    at += paddedLength(value.length);
  }
  return joined;
}

/** Splits a concatenated value by the lengths of its fields. */
export function splitValues(fields: readonly Field[], joined: Uint8Array): Uint8Array[] {
  let at = 0;
  return fields.map((field) => {
    const value = joined.subarray(at, at + field.length);
    at += paddedLength(field.length);
    return value;
  });
}

/** Whether all fields have a typeof description. */
export function isTypeof(fields: readonly Field[]): boolean {
  return fields.every((field) => field.typeof !== undefined);
}

function paddedLength(length: number): number {
  return (length + 3) & ~3;
}

function payload(name: string, type: Field, protocol: number, header: number): Field {
  return {
    ...type,
    name,
    typeof: typeofExpr(7, concatUserdata([userdataU32(0, protocol), userdataU32(1, header)])),
  };
}

function meta(name: string, type: Field, key: number): Field {
  return { ...type, name, typeof: typeofExpr(9, concatUserdata([userdataU32(0, key)])) };
}

/** nft's user data for an expression: its kind and the data of that kind. */
function typeofExpr(kind: number, data: Uint8Array): Uint8Array {
  return concatUserdata([userdataU32(0, kind), { type: 1, value: data }]);
}
