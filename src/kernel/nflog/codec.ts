import { type AddressKey, ipv6Key } from '../../model/address-key.ts';
import type { Family } from '../../model/ip.ts';
import { AttributeMap } from '../netlink/attribute-map.ts';
import type { NetlinkMessage } from '../netlink/reader.ts';
import type { MessageWriter } from '../netlink/writer.ts';
import { protocolNumbers } from '../numbers.ts';

/** Messages of nfnetlink_log (linux/netfilter/nfnetlink_log.h): packets that a rule with `log group` matched. */

const NFNL_SUBSYS_ULOG = 4;
export const LOG_PACKET = NFNL_SUBSYS_ULOG << 8;
export const LOG_CONFIG = LOG_PACKET | 1;

const CFG = { CMD: 1, MODE: 2, TIMEOUT: 4, QTHRESH: 5 } as const;
const CMD_BIND = 1;
const COPY_PACKET = 2;
const PACKET = { IFINDEX_INDEV: 4, PAYLOAD: 9 } as const;

/** The addresses of a packet that was logged. */
export interface LoggedPacket {
  readonly family: Family;
  /** IP protocol number. */
  readonly protocol: number;
  readonly source: AddressKey;
  readonly sourcePort: number;
  readonly destination: AddressKey;
  readonly destinationPort: number;
  /** The interface on which it arrived; 0 when the node itself sent it. */
  readonly interfaceIndex: number;
}

/** Bytes of each packet to copy: the longest IPv4 header and the ports. */
const copiedBytes = 64;
/** Packets that the kernel collects before it sends them, and how long, in hundredths of a second. */
const packetsAtOnce = 32;
const waitHundredths = 5;

export function writeBind(writer: MessageWriter, group: number): void {
  writer.nfgenmsg(0, group);
  writer.u8(CFG.CMD, CMD_BIND);
}

export function writeSettings(writer: MessageWriter, group: number): void {
  writer.nfgenmsg(0, group);
  writer.data(CFG.MODE, Uint8Array.of(0, 0, 0, copiedBytes, COPY_PACKET, 0));
  writer.u32Be(CFG.TIMEOUT, waitHundredths);
  writer.u32Be(CFG.QTHRESH, packetsAtOnce);
}

/** Reads a packet; undefined when it is no first fragment of IPv4 or IPv6, or its protocol has no ports. */
export function readLoggedPacket(message: NetlinkMessage): LoggedPacket | undefined {
  const attributes = AttributeMap.of(message);
  const bytes = attributes.bytes(PACKET.PAYLOAD);
  const interfaceIndex = attributes.u32Be(PACKET.IFINDEX_INDEV) ?? 0;
  if (!bytes) return undefined;
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  return (bytes[0] ?? 0) >> 4 === 6 ? readIPv6(bytes, view, interfaceIndex) : readIPv4(view, interfaceIndex);
}

const ipv4HeaderBytes = 20;
const ipv6HeaderBytes = 40;
const fragmentOffsetMask = 0x1fff;
const portsBytes = 4;

function readIPv4(view: DataView, interfaceIndex: number): LoggedPacket | undefined {
  if (view.byteLength < ipv4HeaderBytes || view.getUint8(0) >> 4 !== 4) return undefined;
  const header = (view.getUint8(0) & 0xf) * 4;
  const protocol = view.getUint8(9);
  const isFragment = (view.getUint16(6) & fragmentOffsetMask) !== 0;
  if (isFragment || !hasPorts(protocol) || view.byteLength < header + portsBytes) return undefined;
  return {
    family: 'IPv4',
    protocol,
    source: view.getUint32(12),
    sourcePort: view.getUint16(header),
    destination: view.getUint32(16),
    destinationPort: view.getUint16(header + 2),
    interfaceIndex,
  };
}

function readIPv6(bytes: Uint8Array, view: DataView, interfaceIndex: number): LoggedPacket | undefined {
  if (view.byteLength < ipv6HeaderBytes + portsBytes) return undefined;
  const protocol = view.getUint8(6);
  if (!hasPorts(protocol)) return undefined;
  return {
    family: 'IPv6',
    protocol,
    source: ipv6Key(bytes, 8),
    sourcePort: view.getUint16(ipv6HeaderBytes),
    destination: ipv6Key(bytes, 24),
    destinationPort: view.getUint16(ipv6HeaderBytes + 2),
    interfaceIndex,
  };
}

function hasPorts(protocol: number): boolean {
  return Object.values(protocolNumbers).includes(protocol);
}
