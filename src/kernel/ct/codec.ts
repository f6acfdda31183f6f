import { keyBytes } from '../../model/address-key.ts';
import type { Family } from '../../model/ip.ts';
import { nfgenmsgLength } from '../netlink/constants.ts';
import { type AttributeReader, NetlinkFormatError, type NetlinkMessage } from '../netlink/reader.ts';
import type { MessageWriter } from '../netlink/writer.ts';
import { addressFamilies, nameOf } from '../numbers.ts';
import { CTA, IP, PROTO, TUPLE } from './constants.ts';
import type { Flow, FlowFilter, FlowIdentity, FlowTuple } from './flow.ts';
import { type FlowAddress, readTCPState } from './tracked-flow.ts';

/** Messages about single entries; see tracked-flow.ts for those who look at many. */

const FILTER_ORIG_FLAGS = 1;
/** Parts of the tuple that a filter compares. */
const FILTER_FLAG = { IP_DST: 0x2, PROTO_NUM: 0x8, PROTO_DST_PORT: 0x20 } as const;

/**
 * Writes the request for a dump. The kernel may return more flows than pass the filter: it supports conditions on the
 * tuple from 5.8 on. A condition on an IPv6 address is never sent, because kernels up to 6.18 at least invert it.
 */
export function writeFilter(writer: MessageWriter, wanted: FlowFilter): void {
  const { originalDestination, ...rest } = wanted;
  const filter: FlowFilter =
    wanted.family === 'IPv6' || !originalDestination ? rest : { ...rest, originalDestination };
  writer.nfgenmsg(addressFamilies[filter.family]);
  if (filter.mark) {
    writer.u32Be(CTA.MARK, filter.mark.value);
    writer.u32Be(CTA.MARK_MASK, filter.mark.mask);
  }
  const flags = tupleFlags(filter);
  if (flags === 0) return;
  writeFilterTuple(writer, filter);
  const nest = writer.beginNested(CTA.FILTER);
  writer.u32(FILTER_ORIG_FLAGS, flags);
  writer.endNested(nest);
}

/** Writes the request to delete one entry. Its id protects a later entry with the same addresses. */
export function writeDelete(writer: MessageWriter, flow: FlowIdentity): void {
  writeEntry(writer, flow, flow.original);
  writer.u32Be(CTA.ID, flow.id);
}

/** Writes the request for one entry. */
export function writeGet(writer: MessageWriter, flow: FlowAddress): void {
  const { sourcePort, destinationPort } = flow;
  const [source, destination] = [keyBytes(flow.source), keyBytes(flow.destination)];
  writeEntry(writer, flow, { source, destination, sourcePort, destinationPort });
}

function writeEntry(
  writer: MessageWriter,
  { family, protocol, zone }: Pick<Flow, 'family' | 'protocol' | 'zone'>,
  { source, destination, sourcePort, destinationPort }: FlowTuple,
): void {
  writer.nfgenmsg(addressFamilies[family]);
  const tuple = writer.beginNested(CTA.TUPLE_ORIG);
  writeAddresses(writer, family, source, destination);
  const proto = writer.beginNested(TUPLE.PROTO);
  writer.u8(PROTO.NUM, protocol);
  writer.u16Be(PROTO.SRC_PORT, sourcePort);
  writer.u16Be(PROTO.DST_PORT, destinationPort);
  writer.endNested(proto);
  writer.endNested(tuple);
  if (zone !== 0) writer.u16Be(CTA.ZONE, zone);
}

/** Reads an entry; undefined for other families. Throws NetlinkFormatError when addresses are missing. */
export function readFlow(message: NetlinkMessage): Flow | undefined {
  const family = nameOf(addressFamilies, message.firstByte);
  if (!family) return undefined;
  const fields = { status: 0, tcpState: 0, timeout: 0, mark: 0, zone: 0, id: 0 };
  let original: ReadTuple | undefined;
  let reply: ReadTuple | undefined;
  for (const reader = message.attributes(nfgenmsgLength); reader.next(); ) {
    if (reader.type === CTA.TUPLE_ORIG) original = readTuple(reader.nested());
    else if (reader.type === CTA.TUPLE_REPLY) reply = readTuple(reader.nested());
    else if (reader.type === CTA.STATUS) fields.status = reader.u32Be();
    else if (reader.type === CTA.PROTOINFO) fields.tcpState = readTCPState(reader.nested());
    else if (reader.type === CTA.TIMEOUT) fields.timeout = reader.u32Be();
    else if (reader.type === CTA.MARK) fields.mark = reader.u32Be();
    else if (reader.type === CTA.ID) fields.id = reader.u32Be();
    else if (reader.type === CTA.ZONE) fields.zone = reader.u16Be();
  }
  if (!original || !reply) throw new NetlinkFormatError('conntrack entry without its two tuples');
  return { family, protocol: original.protocol, original: original.tuple, reply: reply.tuple, ...fields };
}

interface ReadTuple {
  readonly protocol: number;
  readonly tuple: FlowTuple;
}

function readTuple(reader: AttributeReader): ReadTuple {
  let source: Uint8Array | undefined;
  let destination: Uint8Array | undefined;
  const proto = { protocol: 0, sourcePort: 0, destinationPort: 0 };
  while (reader.next()) {
    if (reader.type === TUPLE.PROTO) readProto(reader.nested(), proto);
    if (reader.type !== TUPLE.IP) continue;
    for (const ip = reader.nested(); ip.next(); ) {
      if (ip.type === IP.V4_SRC || ip.type === IP.V6_SRC) source = ip.bytes();
      else if (ip.type === IP.V4_DST || ip.type === IP.V6_DST) destination = ip.bytes();
    }
  }
  if (!source || !destination) throw new NetlinkFormatError('conntrack tuple without addresses');
  const { protocol, ...ports } = proto;
  return { protocol, tuple: { source, destination, ...ports } };
}

function readProto(
  reader: AttributeReader,
  into: { protocol: number; sourcePort: number; destinationPort: number },
): void {
  while (reader.next()) {
    if (reader.type === PROTO.NUM) into.protocol = reader.u8();
    else if (reader.type === PROTO.SRC_PORT) into.sourcePort = reader.u16Be();
    else if (reader.type === PROTO.DST_PORT) into.destinationPort = reader.u16Be();
  }
}

function tupleFlags(filter: FlowFilter): number {
  return (
    (filter.originalDestination ? FILTER_FLAG.IP_DST : 0) |
    (filter.protocol === undefined ? 0 : FILTER_FLAG.PROTO_NUM) |
    (filter.originalDestinationPort === undefined ? 0 : FILTER_FLAG.PROTO_DST_PORT)
  );
}

function writeFilterTuple(writer: MessageWriter, filter: FlowFilter): void {
  const tuple = writer.beginNested(CTA.TUPLE_ORIG);
  if (filter.originalDestination) {
    writeAddresses(writer, filter.family, undefined, filter.originalDestination);
  }
  if (filter.protocol !== undefined) {
    const proto = writer.beginNested(TUPLE.PROTO);
    writer.u8(PROTO.NUM, filter.protocol);
    if (filter.originalDestinationPort !== undefined) {
      writer.u16Be(PROTO.DST_PORT, filter.originalDestinationPort);
    }
    writer.endNested(proto);
  }
  writer.endNested(tuple);
}

function writeAddresses(
  writer: MessageWriter,
  family: Family,
  source: Uint8Array | undefined,
  destination: Uint8Array,
): void {
  const ip = writer.beginNested(TUPLE.IP);
  if (source) writer.data(family === 'IPv4' ? IP.V4_SRC : IP.V6_SRC, source);
  writer.data(family === 'IPv4' ? IP.V4_DST : IP.V6_DST, destination);
  writer.endNested(ip);
}
