import { hostLittleEndian } from '../../native/byte-order.ts';
import { NetlinkFormatError, type NetlinkMessage } from '../netlink/reader.ts';

export const RTM_NEWLINK = 16;
export const RTM_DELLINK = 17;
export const RTM_GETLINK = 18;
export const RTNLGRP_LINK = 1;
/** struct ifinfomsg: family, padding, type, index, flags, change mask. */
export const linkHeaderLength = 16;

const IFLA_IFNAME = 3;
const IFF_UP = 0x1;
const IFF_LOOPBACK = 0x8;

/** A network interface. */
export interface Link {
  readonly index: number;
  readonly name: string;
  readonly up: boolean;
  readonly loopback: boolean;
}

export function readLink(message: NetlinkMessage): Link {
  const header = message.payload();
  if (header.length < linkHeaderLength)
    throw new NetlinkFormatError(`link message of ${header.length} bytes`);
  const view = new DataView(header.buffer, header.byteOffset, header.length);
  const flags = view.getUint32(8, hostLittleEndian);
  let name = '';
  for (const reader = message.attributes(linkHeaderLength); reader.next(); ) {
    if (reader.type === IFLA_IFNAME) name = reader.string();
  }
  return {
    index: view.getInt32(4, hostLittleEndian),
    name,
    up: (flags & IFF_UP) !== 0,
    loopback: (flags & IFF_LOOPBACK) !== 0,
  };
}
