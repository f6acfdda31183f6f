import { type Family, formatIP } from '../../model/ip.ts';
import { hostLittleEndian } from '../../native/byte-order.ts';
import { NetlinkFormatError, type NetlinkMessage } from '../netlink/reader.ts';

export const RTM_NEWADDR = 20;
export const RTM_DELADDR = 21;
export const RTM_GETADDR = 22;
export const RTNLGRP_IPV4_IFADDR = 5;
export const RTNLGRP_IPV6_IFADDR = 9;
/** struct ifaddrmsg: family, prefix length, flags, scope, interface index. */
export const addressHeaderLength = 8;

const IFA_ADDRESS = 1;
const IFA_LOCAL = 2;
const IFA_FLAGS = 8;
const families: ReadonlyMap<number, Family> = new Map([
  [2, 'IPv4'],
  [10, 'IPv6'],
]);
const scopes: ReadonlyMap<number, AddressScope> = new Map([
  [0, 'global'],
  [200, 'site'],
  [253, 'link'],
  [254, 'host'],
  [255, 'nowhere'],
]);

export type AddressScope = 'global' | 'site' | 'link' | 'host' | 'nowhere' | 'other';

/** An address on an interface. */
export interface InterfaceAddress {
  /** Canonical text. */
  readonly ip: string;
  readonly family: Family;
  readonly prefix: number;
  readonly interfaceIndex: number;
  readonly scope: AddressScope;
  /** IFA_F_* bits: 0x40 tentative, 0x20 deprecated, 0x01 secondary or temporary. */
  readonly flags: number;
}

/** Undefined for other families and for addresses of no length that belongs to theirs. */
export function readAddress(message: NetlinkMessage): InterfaceAddress | undefined {
  const header = message.payload();
  if (header.length < addressHeaderLength) {
    throw new NetlinkFormatError(`address message of ${header.length} bytes`);
  }
  const [familyNumber = 0, prefix = 0, shortFlags = 0, scope = 0] = header;
  const family = families.get(familyNumber);
  let flags = shortFlags;
  let local: Uint8Array | undefined;
  let address: Uint8Array | undefined;
  for (const reader = message.attributes(addressHeaderLength); reader.next(); ) {
    if (reader.type === IFA_LOCAL) local = reader.bytes();
    else if (reader.type === IFA_ADDRESS) address = reader.bytes();
    else if (reader.type === IFA_FLAGS) flags = reader.u32();
  }
  // On a point-to-point interface IFA_ADDRESS is the other end; IFA_LOCAL, where present, is always ours.
  const bytes = local ?? address;
  if (!family || bytes?.length !== (family === 'IPv4' ? 4 : 16)) return undefined;
  const view = new DataView(header.buffer, header.byteOffset, header.length);
  return {
    ip: formatIP({ family, bytes }),
    family,
    prefix,
    interfaceIndex: view.getUint32(4, hostLittleEndian),
    scope: scopes.get(scope) ?? 'other',
    flags,
  };
}
