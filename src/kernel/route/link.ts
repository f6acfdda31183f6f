import { hostLittleEndian } from '../../native/byte-order.ts';
import { AttributeMap } from '../netlink/attribute-map.ts';
import { NetlinkFormatError, type NetlinkMessage } from '../netlink/reader.ts';

export const RTM_NEWLINK = 16;
export const RTM_DELLINK = 17;
export const RTM_GETLINK = 18;
/** struct ifinfomsg: family, padding, type, index, flags, change mask. */
export const linkHeaderLength = 16;
export const IFLA_IFNAME = 3;
const IFLA_MTU = 4;
const IFLA_MASTER = 10;
export const IFLA_LINKINFO = 18;
export const IFLA_INFO_KIND = 1;
/** RTNLGRP_LINK. */
export const linkGroups: readonly number[] = [1];
const IFF_UP = 1;
const IFF_LOOPBACK = 8;

/** A network interface. */
export interface Link {
  readonly index: number;
  readonly name: string;
  /** Kind of virtual device, such as `dummy`; empty for other interfaces. */
  readonly kind: string;
  readonly isUp: boolean;
  readonly isLoopback: boolean;
  /** The size of the largest packet that it sends; absent when the kernel does not say. */
  readonly mtu?: number;
  /** Index of the bridge, bond or other interface that it is a part of; absent when there is none. */
  readonly master?: number;
}

/** Reads an interface; undefined for any other message. */
export function readLink(message: NetlinkMessage): Link | undefined {
  if (message.type !== RTM_NEWLINK) return undefined;
  const header = message.payload();
  if (header.length < linkHeaderLength)
    throw new NetlinkFormatError(`link message of ${header.length} bytes`);
  const attributes = AttributeMap.of(message, linkHeaderLength);
  const view = new DataView(header.buffer, header.byteOffset, header.length);
  const flags = view.getUint32(8, hostLittleEndian);
  const [mtu, master] = [attributes.u32(IFLA_MTU), attributes.u32(IFLA_MASTER)];
  return {
    index: view.getInt32(4, hostLittleEndian),
    name: attributes.string(IFLA_IFNAME) ?? '',
    kind: attributes.nestedMap(IFLA_LINKINFO)?.string(IFLA_INFO_KIND) ?? '',
    isUp: (flags & IFF_UP) !== 0,
    isLoopback: (flags & IFF_LOOPBACK) !== 0,
    ...(mtu !== undefined && { mtu }),
    ...(master !== undefined && { master }),
  };
}
