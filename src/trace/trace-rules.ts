import type { Expr, Register } from '../kernel/nft/expr.ts';
import { types } from '../kernel/nft/fields.ts';
import type { Hook, NftSet, Table } from '../kernel/nft/objects.ts';
import { addressFamilies, protocolNumbers } from '../kernel/numbers.ts';
import type { CIDR, Family } from '../model/ip.ts';
import type { Protocol } from '../model/objects.ts';
import { hostLittleEndian } from '../native/byte-order.ts';
import type { Interest } from './interest.ts';

/** The rules that choose packets: by interest, then one of each connection, then as many as the limit allows. */

/** The rule of this chain makes the kernel trace a packet. */
export const MARK_CHAIN = 'mark';

/** Numbers of the kernel. */
const loopbackIndex = 1;
const routeTypeLocal = 2;
const TCP_FLAGS = { offset: 13, syn: 0x02, openings: 0x17 } as const;
const SCTP_CHUNK = { offset: 12, init: 1 } as const;
/** More connections than this are not told apart; packets of further ones are not followed. */
const maxConnections = 65_535;

/** Packets of the node to itself were seen at output; they arrive again on the loopback interface. */
export function arrivalOf(hook: Hook): Expr[] {
  if (hook !== 'prerouting') return [];
  return [
    { kind: 'meta', key: 'iif', dreg: 0 },
    { kind: 'cmp', op: 'neq', sreg: 0, value: hostWord(loopbackIndex) },
  ];
}

/** Matches first packets of connections, as far as a chain before conntrack can, and hands them on. */
export function interestRule({
  family,
  protocol,
  source,
  sourcePort,
  destination,
  port,
}: Interest): readonly Expr[] {
  return [
    { kind: 'meta', key: 'nfproto', dreg: 0 },
    equal(Uint8Array.of(addressFamilies[family])),
    { kind: 'meta', key: 'l4proto', dreg: 0 },
    equal(Uint8Array.of(protocolNumbers[protocol])),
    ...(source === undefined || source === 'node' ? [] : addressIn(source, addressOffsets[family].source)),
    ...(destination === 'node' ? ownAddress : addressIn(destination, addressOffsets[family].destination)),
    ...(sourcePort === undefined ? [] : [transport(0, 2), equal(bigEndian(sourcePort))]),
    ...(port === undefined ? [] : [transport(2, 2), equal(bigEndian(port))]),
    ...firstPacket[protocol],
    { kind: 'verdict', verdict: { kind: 'goto', chain: unseenChain(family) } },
  ];
}

/** What the first packet of a connection has; a datagram has nothing of the kind. */
const firstPacket: Readonly<Record<Protocol, readonly Expr[]>> = {
  TCP: [
    transport(TCP_FLAGS.offset, 1),
    {
      kind: 'bitwise',
      sreg: 0,
      dreg: 0,
      mask: Uint8Array.of(TCP_FLAGS.openings),
      xor: Uint8Array.of(0),
    },
    equal(Uint8Array.of(TCP_FLAGS.syn)),
  ],
  UDP: [],
  SCTP: [transport(SCTP_CHUNK.offset, 1), equal(Uint8Array.of(SCTP_CHUNK.init))],
};

const addressOffsets = {
  IPv4: { source: 12, destination: 16, length: 4 },
  IPv6: { source: 8, destination: 24, length: 16 },
} as const;

const ownAddress: readonly Expr[] = [
  { kind: 'fib', flags: ['daddr'], result: 'type', dreg: 0 },
  { kind: 'cmp', op: 'eq', sreg: 0, value: hostWord(routeTypeLocal) },
];

function addressIn({ bytes, prefix }: CIDR, offset: number): Expr[] {
  if (prefix === 0) return [];
  const mask = bytes.map((_, i) => 0xff & ~(0xff >> Math.min(8, Math.max(0, prefix - 8 * i))));
  return [
    { kind: 'payload', base: 'network', offset, length: bytes.length, dreg: 0 },
    { kind: 'bitwise', sreg: 0, dreg: 0, mask, xor: new Uint8Array(bytes.length) },
    equal(bytes),
  ];
}

export function unseenChain(family: Family): string {
  return `unseen-${family.toLowerCase()}`;
}

/** Connections of which a packet was seen: the kernel traces only one packet of each. */
export function seenSet(table: Table, family: Family): NftSet {
  const address = family === 'IPv4' ? types.ipv4Addr : types.ipv6Addr;
  return {
    table,
    name: `seen-${family.toLowerCase()}`,
    key: [address, address, types.inetService, types.inetService, types.inetProto],
    flags: ['dynamic'],
    size: maxConnections,
  };
}

export function unseenRule(family: Family, set: string): Expr[] {
  const { source, destination, length } = addressOffsets[family];
  const words = length / 4;
  const address = (offset: number, dreg: Register): Expr => {
    return { kind: 'payload', base: 'network', offset, length, dreg };
  };
  return [
    address(source, 0),
    address(destination, words),
    transport(0, 2, 2 * words),
    transport(2, 2, 2 * words + 1),
    { kind: 'meta', key: 'l4proto', dreg: 2 * words + 2 },
    { kind: 'lookup', set, sreg: 0, inverse: true },
    { kind: 'dynset', op: 'add', set, key: 0 },
    { kind: 'verdict', verdict: { kind: 'goto', chain: MARK_CHAIN } },
  ];
}

/** One packet a day more than the burst: as good as none. */
export function markRule(packets: number): Expr[] {
  return [
    { kind: 'limit', rate: 1n, unitSeconds: 86_400n, burst: packets, counts: 'packets' },
    { kind: 'immediate', dreg: 0, value: Uint8Array.of(1) },
    { kind: 'meta-set', key: 'nftrace', sreg: 0 },
  ];
}

function transport(offset: number, length: number, dreg: Register = 0): Expr {
  return { kind: 'payload', base: 'transport', offset, length, dreg };
}

function equal(value: Uint8Array): Expr {
  return { kind: 'cmp', op: 'eq', sreg: 0, value };
}

function bigEndian(port: number): Uint8Array {
  return Uint8Array.of(port >> 8, port & 0xff);
}

/** Four bytes in the order of this machine. */
function hostWord(value: number): Uint8Array {
  const bytes = new Uint8Array(4);
  new DataView(bytes.buffer).setUint32(0, value, hostLittleEndian);
  return bytes;
}
