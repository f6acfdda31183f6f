import { type Family, formatIP, type IP, parseIP } from '../../model/ip.ts';
import { AttributeMap } from '../netlink/attribute-map.ts';
import { genericCommand, genericHeaderLength, writeGenericHeader } from '../netlink/generic.ts';
import { NetlinkFormatError, type NetlinkMessage } from '../netlink/reader.ts';
import type { MessageWriter } from '../netlink/writer.ts';
import { addressFamilies, nameOf, protocolNumbers } from '../numbers.ts';
import {
  DEST_ATTR,
  IP_VS_CONN_F_FWD_MASK,
  IP_VS_SVC_F_HASHED,
  IPVS_ATTR,
  IPVS_CMD,
  IPVS_VERSION,
  SVC_ATTR,
} from './constants.ts';
import type {
  ForwardingMethod,
  IpvsOperation,
  IpvsTimeouts,
  ListedRealServer,
  ListedVirtualServer,
  RealServer,
  RealServerKey,
  VirtualServer,
  VirtualServerKey,
} from './objects.ts';

const forwardingMethods: readonly ForwardingMethod[] = ['masquerade', 'local', 'tunnel', 'route'];
const serverCommands = {
  add: IPVS_CMD.NEW_SERVICE,
  edit: IPVS_CMD.SET_SERVICE,
  delete: IPVS_CMD.DEL_SERVICE,
} as const;
const realServerCommands = {
  add: IPVS_CMD.NEW_DEST,
  edit: IPVS_CMD.SET_DEST,
  delete: IPVS_CMD.DEL_DEST,
} as const;

/** Writes header and attributes of a change. Throws RangeError for an invalid address. */
export function writeOperation(writer: MessageWriter, operation: IpvsOperation): void {
  const { verb, server } = operation;
  if ('real' in operation) {
    writeGenericHeader(writer, realServerCommands[verb], IPVS_VERSION);
    writeService(writer, server);
    if (operation.verb === 'delete') writeDestination(writer, operation.real);
    else writeDestination(writer, operation.real, operation.real);
    return;
  }
  writeGenericHeader(writer, serverCommands[verb], IPVS_VERSION);
  if (operation.verb === 'delete') writeService(writer, server);
  else writeService(writer, server, operation.server);
}

/** Asks for all virtual servers, in a dump. */
export function writeServerQuery(writer: MessageWriter): void {
  writeGenericHeader(writer, IPVS_CMD.GET_SERVICE, IPVS_VERSION);
}

/** Asks for the real servers of a virtual server, in a dump. */
export function writeRealServerQuery(writer: MessageWriter, server: VirtualServerKey): void {
  writeGenericHeader(writer, IPVS_CMD.GET_DEST, IPVS_VERSION);
  writeService(writer, server);
}

export function writeFlush(writer: MessageWriter): void {
  writeGenericHeader(writer, IPVS_CMD.FLUSH, IPVS_VERSION);
}

export function writeTimeouts(writer: MessageWriter, timeouts: IpvsTimeouts): void {
  writeGenericHeader(writer, IPVS_CMD.SET_CONFIG, IPVS_VERSION);
  writer.u32(IPVS_ATTR.TIMEOUT_TCP, timeouts.tcp);
  writer.u32(IPVS_ATTR.TIMEOUT_TCP_FIN, timeouts.tcpFin);
  writer.u32(IPVS_ATTR.TIMEOUT_UDP, timeouts.udp);
}

/** Reads a virtual server; undefined for any other message. */
export function readServer(message: NetlinkMessage): ListedVirtualServer | undefined {
  const attributes = objectOf(message, IPVS_CMD.NEW_SERVICE, IPVS_ATTR.SERVICE);
  if (!attributes) return undefined;
  const family = addressFamily(attributes.u16(SVC_ATTR.AF));
  const scheduler = attributes.string(SVC_ATTR.SCHED_NAME) ?? '';
  const mark = attributes.u32(SVC_ATTR.FWMARK);
  if (mark !== undefined) return { foreign: `firewall mark ${mark}`, family, scheduler };
  const number = required(attributes.u16(SVC_ATTR.PROTOCOL), 'virtual server', 'protocol');
  const protocol = nameOf(protocolNumbers, number);
  if (!protocol) return { foreign: `IP protocol ${number}`, family, scheduler };
  return {
    address: readAddress(attributes.bytes(SVC_ATTR.ADDR), family),
    port: required(attributes.u16Be(SVC_ATTR.PORT), 'virtual server', 'port'),
    protocol,
    scheduler,
    flags: ((attributes.u32(SVC_ATTR.FLAGS) ?? 0) & ~IP_VS_SVC_F_HASHED) >>> 0,
    timeout: attributes.u32(SVC_ATTR.TIMEOUT) ?? 0,
    // The kernel keeps an address mask for IPv4 and a prefix length for IPv6.
    netmask: (family === 'IPv4' ? attributes.u32Be(SVC_ATTR.NETMASK) : attributes.u32(SVC_ATTR.NETMASK)) ?? 0,
  };
}

/** Reads a real server; undefined for any other message. */
export function readRealServer(message: NetlinkMessage): ListedRealServer | undefined {
  const attributes = objectOf(message, IPVS_CMD.NEW_DEST, IPVS_ATTR.DEST);
  if (!attributes) return undefined;
  const address = attributes.bytes(DEST_ATTR.ADDR);
  const familyNumber = attributes.u16(DEST_ATTR.ADDR_FAMILY);
  const family = familyNumber === undefined ? guessFamily(address) : addressFamily(familyNumber);
  const method = (attributes.u32(DEST_ATTR.FWD_METHOD) ?? 0) & IP_VS_CONN_F_FWD_MASK;
  return {
    address: readAddress(address, family),
    port: required(attributes.u16Be(DEST_ATTR.PORT), 'real server', 'port'),
    weight: attributes.u32(DEST_ATTR.WEIGHT) ?? 0,
    forwarding: forwardingMethods[method] ?? 'other',
    activeConnections: attributes.u32(DEST_ATTR.ACTIVE_CONNS) ?? 0,
    inactiveConnections: attributes.u32(DEST_ATTR.INACT_CONNS) ?? 0,
    persistentConnections: attributes.u32(DEST_ATTR.PERSIST_CONNS) ?? 0,
  };
}

/** Writes the key of a virtual server, and with `server` also its settings. */
function writeService(writer: MessageWriter, key: VirtualServerKey, server?: VirtualServer): void {
  const ip = addressOf(key.address, 'virtual server');
  const nest = writer.beginNested(IPVS_ATTR.SERVICE);
  writer.u16(SVC_ATTR.AF, addressFamilies[ip.family]);
  writer.u16(SVC_ATTR.PROTOCOL, protocolNumbers[key.protocol]);
  writer.data(SVC_ATTR.ADDR, ip.bytes);
  writer.u16Be(SVC_ATTR.PORT, key.port);
  if (server) {
    writer.string(SVC_ATTR.SCHED_NAME, server.scheduler);
    writer.data(SVC_ATTR.FLAGS, new Uint8Array(Uint32Array.of(server.flags, 0xffffffff).buffer));
    writer.u32(SVC_ATTR.TIMEOUT, server.timeout);
    if (ip.family === 'IPv4') writer.u32Be(SVC_ATTR.NETMASK, server.netmask);
    else writer.u32(SVC_ATTR.NETMASK, server.netmask);
  }
  writer.endNested(nest);
}

function writeDestination(writer: MessageWriter, key: RealServerKey, real?: RealServer): void {
  const { bytes } = addressOf(key.address, 'real server');
  const nest = writer.beginNested(IPVS_ATTR.DEST);
  writer.data(DEST_ATTR.ADDR, bytes);
  writer.u16Be(DEST_ATTR.PORT, key.port);
  if (real) {
    writer.u32(DEST_ATTR.FWD_METHOD, 0);
    writer.u32(DEST_ATTR.WEIGHT, real.weight);
    writer.u32(DEST_ATTR.U_THRESH, 0);
    writer.u32(DEST_ATTR.L_THRESH, 0);
  }
  writer.endNested(nest);
}

function objectOf(message: NetlinkMessage, command: number, type: number): AttributeMap | undefined {
  if (genericCommand(message) !== command) return undefined;
  return AttributeMap.of(message, genericHeaderLength).nestedMap(type);
}

/** The kernel sends 16 bytes for both families. */
function readAddress(bytes: Uint8Array | undefined, family: Family): string {
  const length = family === 'IPv4' ? 4 : 16;
  if (!bytes || bytes.length < length)
    throw new NetlinkFormatError(`IPVS address of ${bytes?.length ?? 0} bytes`);
  return formatIP({ family, bytes: bytes.subarray(0, length) });
}

/** Kernels before 3.18 do not report the family of a real server. */
function guessFamily(bytes: Uint8Array | undefined): Family {
  const isShort = bytes?.subarray(4).every((byte) => byte === 0) ?? false;
  return isShort && bytes?.subarray(0, 4).some((byte) => byte !== 0) ? 'IPv4' : 'IPv6';
}

function addressFamily(number: number | undefined): Family {
  const family = nameOf(addressFamilies, number);
  if (!family) throw new NetlinkFormatError(`IPVS object of address family ${number ?? 'unknown'}`);
  return family;
}

function addressOf(text: string, what: string): IP {
  const ip = parseIP(text);
  if (!ip) throw new RangeError(`${what} address ${JSON.stringify(text)} is no IP address`);
  return ip;
}

function required(value: number | undefined, what: string, field: string): number {
  if (value === undefined) throw new NetlinkFormatError(`${what} without ${field}`);
  return value;
}
