import { hostLittleEndian } from '../../native/byte-order.ts';
import { AttributeMap } from '../netlink/attribute-map.ts';
import { NetlinkFormatError, type NetlinkMessage } from '../netlink/reader.ts';

export const RTM_NEWLINK = 16;
export const RTM_DELLINK = 17;
export const RTM_GETLINK = 18;
/** struct ifinfomsg: family, padding, type, index, flags, change mask. */
export const linkHeaderLength = 16;
export const IFLA_IFNAME = 3;
export const IFLA_LINKINFO = 18;
export const IFLA_INFO_KIND = 1;

/** A network interface. */
export interface Link {
  readonly index: number;
  readonly name: string;
  /** Kind of virtual device, such as `dummy`; empty for other interfaces. */
  readonly kind: string;
}

/** Reads an interface; undefined for any other message. */
export function readLink(message: NetlinkMessage): Link | undefined {
  if (message.type !== RTM_NEWLINK) return undefined;
  const header = message.payload();
  if (header.length < linkHeaderLength)
    throw new NetlinkFormatError(`link message of ${header.length} bytes`);
  const attributes = AttributeMap.of(message, linkHeaderLength);
  return {
    index: new DataView(header.buffer, header.byteOffset, header.length).getInt32(4, hostLittleEndian),
    name: attributes.string(IFLA_IFNAME) ?? '',
    kind: attributes.nestedMap(IFLA_LINKINFO)?.string(IFLA_INFO_KIND) ?? '',
  };
}
