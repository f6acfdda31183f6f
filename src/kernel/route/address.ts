import { formatIP } from '../../model/ip.ts';
import { hostLittleEndian } from '../../native/byte-order.ts';
import { AttributeMap } from '../netlink/attribute-map.ts';
import { NetlinkFormatError, type NetlinkMessage } from '../netlink/reader.ts';
import { addressFamilies, nameOf } from '../numbers.ts';

export const RTM_NEWADDR = 20;
export const RTM_DELADDR = 21;
export const RTM_GETADDR = 22;
/** RTNLGRP_IPV4_IFADDR and RTNLGRP_IPV6_IFADDR. */
export const addressGroups: readonly number[] = [5, 9];
/** struct ifaddrmsg: family, prefix length, flags, scope, interface index. */
export const addressHeaderLength = 8;
export const IFA_ADDRESS = 1;
export const IFA_LOCAL = 2;

/** An address on an interface. */
export interface InterfaceAddress {
  /** Canonical text. */
  readonly ip: string;
  readonly prefix: number;
  readonly interfaceIndex: number;
}

/** Reads an address; undefined for families other than IPv4 and IPv6 and for addresses of a wrong length. */
export function readAddress(message: NetlinkMessage): InterfaceAddress | undefined {
  const header = message.payload();
  if (header.length < addressHeaderLength) {
    throw new NetlinkFormatError(`address message of ${header.length} bytes`);
  }
  const [familyNumber, prefix = 0] = header;
  const family = nameOf(addressFamilies, familyNumber);
  const attributes = AttributeMap.of(message, addressHeaderLength);
  // On a point-to-point interface IFA_ADDRESS is the other end; IFA_LOCAL, where present, is always ours.
  const bytes = attributes.bytes(IFA_LOCAL) ?? attributes.bytes(IFA_ADDRESS);
  if (!family || bytes?.length !== (family === 'IPv4' ? 4 : 16)) return undefined;
  const view = new DataView(header.buffer, header.byteOffset, header.length);
  return { ip: formatIP({ family, bytes }), prefix, interfaceIndex: view.getUint32(4, hostLittleEndian) };
}
