import { bitsOf, type Family, formatIP, type IP } from '../../model/ip.ts';
import { AttributeMap } from '../netlink/attribute-map.ts';
import { headerLength, NLMSG_ERROR, nfgenmsgLength } from '../netlink/constants.ts';
import { type AttributeReader, NetlinkFormatError, NetlinkMessage } from '../netlink/reader.ts';
import type { MessageWriter } from '../netlink/writer.ts';
import { addressFamilies, nameOf } from '../numbers.ts';
import { DATA_ATTR, IPADDR, IPSET_ATTR, IPSET_PROTOCOL, NLA_F_NET_BYTEORDER } from './constants.ts';
import { formatEntry, type SetEntry } from './entry.ts';
import type { ListedSet, SetDefinition } from './objects.ts';

/** Writes family and protocol version, with which every message begins. */
export function writeHeader(writer: MessageWriter, family: Family = 'IPv4'): void {
  writer.nfgenmsg(addressFamilies[family]);
  writer.u8(IPSET_ATTR.PROTOCOL, IPSET_PROTOCOL);
}

/** Writes the header of a message about one set. */
export function writeSetName(writer: MessageWriter, name: string): void {
  writeHeader(writer);
  writer.string(IPSET_ATTR.SETNAME, name);
}

/** Asks for the revisions of a set type that the kernel supports. */
export function writeTypeQuery(writer: MessageWriter, set: SetDefinition): void {
  writeHeader(writer, 'family' in set ? set.family : undefined);
  writer.string(IPSET_ATTR.TYPENAME, set.type);
  writer.u8(IPSET_ATTR.FAMILY, setFamily(set));
}

export function writeCreate(writer: MessageWriter, set: SetDefinition, revision: number): void {
  writeHeader(writer, 'family' in set ? set.family : undefined);
  writer.string(IPSET_ATTR.SETNAME, set.name);
  writer.string(IPSET_ATTR.TYPENAME, set.type);
  writer.u8(IPSET_ATTR.REVISION, revision);
  writer.u8(IPSET_ATTR.FAMILY, setFamily(set));
  const data = writer.beginNested(IPSET_ATTR.DATA);
  if (set.type === 'bitmap:port') {
    writer.u16Be(DATA_ATTR.PORT | NLA_F_NET_BYTEORDER, set.from);
    writer.u16Be(DATA_ATTR.PORT_TO | NLA_F_NET_BYTEORDER, set.to);
  } else {
    writer.u32Be(DATA_ATTR.HASHSIZE | NLA_F_NET_BYTEORDER, set.hashSize);
    writer.u32Be(DATA_ATTR.MAXELEM | NLA_F_NET_BYTEORDER, set.maxElements);
  }
  writer.endNested(data);
}

/**
 * Writes entries to add or delete, numbered from 1, so that the kernel can report which one it refused. All must fit
 * into one attribute of 64 KiB.
 */
export function writeEntries(writer: MessageWriter, set: string, entries: readonly SetEntry[]): void {
  writeSetName(writer, set);
  writer.u32(IPSET_ATTR.LINENO, 0);
  const list = writer.beginNested(IPSET_ATTR.ADT);
  for (const [i, entry] of entries.entries()) {
    const data = writer.beginNested(IPSET_ATTR.DATA);
    writeEntry(writer, entry);
    writer.u32(DATA_ATTR.LINENO, i + 1);
    writer.endNested(data);
  }
  writer.endNested(list);
}

/**
 * The number of the entry that the kernel refused, from 1; undefined when it refused the whole message. The kernel
 * returns the message with this number in the LINENO attribute.
 */
export function refusedEntry(message: NetlinkMessage): number | undefined {
  const payload = message.payload();
  if (message.type !== NLMSG_ERROR || payload.length < 4 + headerLength + nfgenmsgLength) return undefined;
  const quoted = payload.subarray(4);
  const view = new DataView(quoted.buffer, quoted.byteOffset, quoted.length);
  const reader = new NetlinkMessage(view, 0, quoted.length).attributes(nfgenmsgLength);
  while (reader.next()) if (reader.type === IPSET_ATTR.LINENO) return reader.u32() || undefined;
  return undefined;
}

/** The kernel's protocol version; undefined when the message does not have it. */
export function readProtocol(message: NetlinkMessage): number | undefined {
  return AttributeMap.of(message).u8(IPSET_ATTR.PROTOCOL);
}

/** The oldest and the newest revision of a set type. */
export function readRevisions(message: NetlinkMessage): { min: number; max: number } {
  const attributes = AttributeMap.of(message);
  const max = attributes.u8(IPSET_ATTR.REVISION);
  if (max === undefined) throw new NetlinkFormatError('set type without a revision');
  return { min: attributes.u8(IPSET_ATTR.REVISION_MIN) ?? max, max };
}

/** Part of the list of a set: its description, entries, or both. */
export interface ListPart {
  readonly header?: Omit<ListedSet, 'entries'>;
  readonly entries: readonly string[];
}

export function readListPart(message: NetlinkMessage): ListPart {
  const attributes = AttributeMap.of(message);
  const entries: string[] = [];
  const list = attributes.nested(IPSET_ATTR.ADT);
  while (list?.next()) entries.push(formatEntry(readEntry(list.nested())));
  const type = attributes.string(IPSET_ATTR.TYPENAME);
  if (type === undefined) return { entries };
  const header = {
    name: attributes.string(IPSET_ATTR.SETNAME) ?? '',
    type,
    family: nameOf(addressFamilies, attributes.u8(IPSET_ATTR.FAMILY)),
    references: attributes.nestedMap(IPSET_ATTR.DATA)?.u32Be(DATA_ATTR.REFERENCES) ?? 0,
  };
  return { header, entries };
}

function writeEntry(writer: MessageWriter, { ip, protocol, port, ip2, prefix2 }: SetEntry): void {
  if (ip) writeAddress(writer, DATA_ATTR.IP, ip);
  if (port !== undefined) writer.u16Be(DATA_ATTR.PORT | NLA_F_NET_BYTEORDER, port);
  if (protocol !== undefined) writer.u8(DATA_ATTR.PROTO, protocol);
  if (ip2) writeAddress(writer, DATA_ATTR.IP2, ip2);
  if (prefix2 !== undefined) writer.u8(DATA_ATTR.CIDR2, prefix2);
}

function readEntry(reader: AttributeReader): SetEntry {
  const attributes = new AttributeMap(reader);
  const ip = readAddress(attributes.nested(DATA_ATTR.IP));
  const port = attributes.u16Be(DATA_ATTR.PORT);
  const protocol = attributes.u8(DATA_ATTR.PROTO);
  const ip2 = readAddress(attributes.nested(DATA_ATTR.IP2));
  const prefix2 = attributes.u8(DATA_ATTR.CIDR2);
  if (prefix2 !== undefined && ip2 && prefix2 > bitsOf(ip2.family)) {
    throw new NetlinkFormatError(`prefix length ${prefix2} of ${formatIP(ip2)}`);
  }
  return {
    ...(ip && { ip }),
    ...(port !== undefined && { port }),
    ...(protocol !== undefined && { protocol }),
    ...(ip2 && { ip2 }),
    ...(prefix2 !== undefined && { prefix2 }),
  };
}

function writeAddress(writer: MessageWriter, type: number, { family, bytes }: IP): void {
  const inner = family === 'IPv4' ? IPADDR.IPV4 : IPADDR.IPV6;
  writer.nestedData(type, inner | NLA_F_NET_BYTEORDER, bytes);
}

function readAddress(reader: AttributeReader | undefined): IP | undefined {
  if (!reader?.next()) return undefined;
  const family = reader.type === IPADDR.IPV4 ? 'IPv4' : 'IPv6';
  const bytes = reader.bytes();
  if (bytes.length !== bitsOf(family) / 8) {
    throw new NetlinkFormatError(`${family} address of ${bytes.length} bytes in a set`);
  }
  return { family, bytes };
}

function setFamily(set: SetDefinition): number {
  return set.type === 'bitmap:port' ? 0 : addressFamilies[set.family];
}
