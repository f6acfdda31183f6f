import { type AddressKey, ipv6Key } from '../../model/address-key.ts';
import type { Family } from '../../model/ip.ts';
import { nfgenmsgLength } from '../netlink/constants.ts';
import { type AttributeReader, NetlinkFormatError, type NetlinkMessage } from '../netlink/reader.ts';
import { addressFamilies, protocolNumbers } from '../numbers.ts';
import { CTA, IP, PROTO, PROTOINFO_TCP, PROTOINFO_TCP_STATE, TUPLE } from './constants.ts';

/** Bits of the status of a flow. */
export const IPS_SEEN_REPLY = 0x2;
export const IPS_ASSURED = 0x4;
/** The flow is on a fast path (a flowtable). */
export const IPS_OFFLOAD = 0x4000;

/** TCP_CONNTRACK_ESTABLISHED, a `tcpState`. */
export const TCP_ESTABLISHED = 3;

const COUNTERS = { PACKETS: 1, BYTES: 2 } as const;
const TIMESTAMP_START = 1;

/**
 * One flow as an event or a dump reports it, for those who look at many: it is filled again for every message, so a
 * caller copies what it keeps.
 */
export class TrackedFlow {
  family: Family = 'IPv4';
  /** IP protocol number. */
  protocol = 0;
  /** The client, and the destination that it used. Ports are 0 where the protocol has none. */
  source: AddressKey = 0;
  sourcePort = 0;
  destination: AddressKey = 0;
  destinationPort = 0;
  /** The host that really answers. */
  answerer: AddressKey = 0;
  answererPort = 0;
  /** IPS_* bits. */
  status = 0;
  id = 0;
  zone = 0;
  /** Seconds until the kernel forgets it without a further packet; 0 when the message does not tell. */
  timeout = 0;
  /** TCP_CONNTRACK_* number; 0 when the message does not tell. */
  tcpState = 0;
  /** Whether the kernel counts packets and bytes of this flow. */
  isCounted = false;
  packetsOut = 0;
  bytesOut = 0;
  packetsBack = 0;
  bytesBack = 0;
  /** Milliseconds since the Unix epoch; 0 when the kernel does not tell. */
  startedAt = 0;
}

/** What finds the entry of a flow, and tells it from a later one with the same addresses. */
export type FlowAddress = Pick<
  TrackedFlow,
  'family' | 'protocol' | 'source' | 'sourcePort' | 'destination' | 'destinationPort' | 'zone' | 'id'
>;

/**
 * Fills `flow` from a conntrack message. Returns false for other families than IPv4 and IPv6. Throws NetlinkFormatError
 * when addresses are missing.
 */
export function readTrackedFlow(message: NetlinkMessage, flow: TrackedFlow): boolean {
  const number = message.firstByte;
  if (number === addressFamilies.IPv4) flow.family = 'IPv4';
  else if (number === addressFamilies.IPv6) flow.family = 'IPv6';
  else return false;
  flow.status = flow.id = flow.zone = flow.timeout = flow.tcpState = flow.startedAt = 0;
  flow.packetsOut = flow.bytesOut = flow.packetsBack = flow.bytesBack = 0;
  flow.isCounted = false;
  let tuples = 0;
  for (const reader = message.attributes(nfgenmsgLength); reader.next(); ) {
    switch (reader.type) {
      case CTA.TUPLE_ORIG:
        readOriginal(reader.nested(), flow);
        tuples |= 1;
        break;
      case CTA.TUPLE_REPLY:
        readReply(reader.nested(), flow);
        tuples |= 2;
        break;
      case CTA.STATUS:
        flow.status = reader.u32Be();
        break;
      case CTA.ID:
        flow.id = reader.u32Be();
        break;
      case CTA.ZONE:
        flow.zone = reader.u16Be();
        break;
      case CTA.TIMEOUT:
        flow.timeout = reader.u32Be();
        break;
      case CTA.PROTOINFO:
        flow.tcpState = readTCPState(reader.nested());
        break;
      case CTA.COUNTERS_ORIG:
        readCounters(reader.nested(), flow, true);
        break;
      case CTA.COUNTERS_REPLY:
        readCounters(reader.nested(), flow, false);
        break;
      case CTA.TIMESTAMP:
        readStart(reader.nested(), flow);
        break;
    }
  }
  if (tuples !== 3) throw new NetlinkFormatError('conntrack entry without its two tuples');
  // The kernel tells neither state nor time-out of a flow on the fast path; only established ones get there.
  if (flow.status & IPS_OFFLOAD && flow.protocol === protocolNumbers.TCP) flow.tcpState ||= TCP_ESTABLISHED;
  return true;
}

function readOriginal(reader: AttributeReader, flow: TrackedFlow): void {
  let found = 0;
  while (reader.next()) {
    if (reader.type === TUPLE.IP) {
      for (const ip = reader.nested(); ip.next(); ) {
        if (ip.type === IP.V4_SRC || ip.type === IP.V6_SRC) {
          flow.source = readAddress(ip, flow.family);
          found |= 1;
        } else if (ip.type === IP.V4_DST || ip.type === IP.V6_DST) {
          flow.destination = readAddress(ip, flow.family);
          found |= 2;
        }
      }
    } else if (reader.type === TUPLE.PROTO) {
      flow.protocol = flow.sourcePort = flow.destinationPort = 0;
      for (const proto = reader.nested(); proto.next(); ) {
        if (proto.type === PROTO.NUM) flow.protocol = proto.u8();
        else if (proto.type === PROTO.SRC_PORT) flow.sourcePort = proto.u16Be();
        else if (proto.type === PROTO.DST_PORT) flow.destinationPort = proto.u16Be();
      }
    }
  }
  if (found !== 3) throw new NetlinkFormatError('conntrack tuple without addresses');
}

/** Of the other direction only its source matters: the host that answers. */
function readReply(reader: AttributeReader, flow: TrackedFlow): void {
  let isFound = false;
  while (reader.next()) {
    if (reader.type === TUPLE.IP) {
      for (const ip = reader.nested(); ip.next(); ) {
        if (ip.type !== IP.V4_SRC && ip.type !== IP.V6_SRC) continue;
        flow.answerer = readAddress(ip, flow.family);
        isFound = true;
      }
    } else if (reader.type === TUPLE.PROTO) {
      flow.answererPort = 0;
      for (const proto = reader.nested(); proto.next(); ) {
        if (proto.type === PROTO.SRC_PORT) flow.answererPort = proto.u16Be();
      }
    }
  }
  if (!isFound) throw new NetlinkFormatError('conntrack tuple without addresses');
}

function readAddress(reader: AttributeReader, family: Family): AddressKey {
  if (family === 'IPv4') return reader.u32Be();
  if (reader.valueLength < 16) throw new NetlinkFormatError('IPv6 address with less than 16 bytes');
  return ipv6Key(reader.view(), 0);
}

/** The TCP_CONNTRACK_* number in CTA_PROTOINFO; 0 when it has none. */
export function readTCPState(reader: AttributeReader): number {
  while (reader.next()) {
    if (reader.type !== PROTOINFO_TCP) continue;
    for (const tcp = reader.nested(); tcp.next(); ) if (tcp.type === PROTOINFO_TCP_STATE) return tcp.u8();
  }
  return 0;
}

function readCounters(reader: AttributeReader, flow: TrackedFlow, isOut: boolean): void {
  flow.isCounted = true;
  while (reader.next()) {
    if (reader.type === COUNTERS.PACKETS) {
      if (isOut) flow.packetsOut = reader.count();
      else flow.packetsBack = reader.count();
    } else if (reader.type === COUNTERS.BYTES) {
      if (isOut) flow.bytesOut = reader.count();
      else flow.bytesBack = reader.count();
    }
  }
}

function readStart(reader: AttributeReader, flow: TrackedFlow): void {
  while (reader.next()) if (reader.type === TIMESTAMP_START) flow.startedAt = reader.count() / 1e6;
}
