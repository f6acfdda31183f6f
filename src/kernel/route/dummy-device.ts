import { inGroups } from '../../lib/groups.ts';
import { bitsOf, type IP, parseIP } from '../../model/ip.ts';
import { hostLittleEndian } from '../../native/byte-order.ts';
import type { Libc } from '../../native/libc.ts';
import { AttributeMap } from '../netlink/attribute-map.ts';
import { NETLINK_ROUTE, NLM_F_CREATE, NLM_F_EXCL } from '../netlink/constants.ts';
import { isNetlinkError, type NetlinkError } from '../netlink/error.ts';
import { NetlinkFormatError, type NetlinkMessage } from '../netlink/reader.ts';
import { type NetlinkRequest, NetlinkSocket, type SocketOptions } from '../netlink/socket.ts';
import { type NetlinkTransport, openTransport } from '../netlink/transport.ts';
import type { MessageWriter } from '../netlink/writer.ts';
import { RTM_DELADDR, RTM_NEWADDR } from './address.ts';
import { linkHeaderLength, RTM_DELLINK, RTM_GETLINK, RTM_NEWLINK } from './link.ts';

const IFLA_IFNAME = 3;
const IFLA_LINKINFO = 18;
const IFLA_INFO_KIND = 1;
const IFA_ADDRESS = 1;
const IFA_LOCAL = 2;
const IFA_CACHEINFO = 6;
const AF_INET = 2;
const AF_INET6 = 10;
const dummyKind = 'dummy';

/** An interface, and what kind of virtual device it is; empty for none. */
export interface Device {
  readonly index: number;
  readonly kind: string;
}

/** An address that could not be added or removed. */
export interface AddressFailure {
  readonly address: string;
  readonly error: NetlinkError;
}

/**
 * Makes dummy interfaces, which exist to hold addresses. They stay down: an address makes the node accept packets
 * for it all the same, and nobody answers ARP for it. Rejects with NetlinkError.
 */
export interface DummyDevices {
  /** Any interface of this name; undefined when there is none. */
  find(name: string): Promise<Device | undefined>;
  /** Makes a dummy interface. Rejects with EEXIST when the name is taken. */
  create(name: string): Promise<void>;
  /** Removes the interface unless there is none; says whether there was. Refuses one that is not a dummy. */
  remove(name: string): Promise<boolean>;
  /**
   * Adds addresses, each as a network of its own; those that are there count as added. Those of IPv6 are deprecated,
   * so that the node does not choose them for what it sends or masquerades: the kernel looks for source addresses on
   * all interfaces, also on those that are down.
   */
  addAddresses(device: Device, addresses: readonly string[]): Promise<AddressFailure[]>;
  /** Removes addresses that `addAddresses` added; those that are gone count as removed. */
  removeAddresses(device: Device, addresses: readonly string[]): Promise<AddressFailure[]>;
  close(): void;
}

/** Requests sent at a time: their acknowledgements must fit into the receive buffer. */
const requestsAtOnce = 512;

export function openDummyDevices(libc: Libc, options: SocketOptions): DummyDevices {
  return new NetlinkDummyDevices(openTransport(libc, NETLINK_ROUTE), options);
}

export class NetlinkDummyDevices implements DummyDevices {
  readonly #socket: NetlinkSocket;

  constructor(transport: NetlinkTransport, options: SocketOptions) {
    this.#socket = new NetlinkSocket(transport, options);
  }

  async find(name: string): Promise<Device | undefined> {
    let device: Device | undefined;
    try {
      await this.#socket.request(linkRequest(RTM_GETLINK, `finding interface ${name}`, name), (message) => {
        if (message.type === RTM_NEWLINK) device = readDevice(message);
      });
    } catch (error) {
      if (isNetlinkError(error, 'ENODEV')) return undefined;
      throw error;
    }
    return device;
  }

  create(name: string): Promise<void> {
    const request = linkRequest(RTM_NEWLINK, `creating dummy interface ${name}`, name, dummyKind);
    return this.#socket.request({ ...request, flags: NLM_F_CREATE | NLM_F_EXCL });
  }

  async remove(name: string): Promise<boolean> {
    const device = await this.find(name);
    if (!device) return false;
    if (device.kind !== dummyKind) {
      throw new Error(
        `interface ${name} is not a dummy interface but of kind ${JSON.stringify(device.kind)}`,
      );
    }
    try {
      await this.#socket.request(linkRequest(RTM_DELLINK, `deleting interface ${name}`, name));
      return true;
    } catch (error) {
      if (isNetlinkError(error, 'ENODEV')) return false;
      throw error;
    }
  }

  addAddresses(device: Device, addresses: readonly string[]): Promise<AddressFailure[]> {
    const flags = NLM_F_CREATE | NLM_F_EXCL;
    return this.#alter(addresses, ['EEXIST'], (address) => ({
      type: RTM_NEWADDR,
      flags,
      name: `adding address ${address} to interface ${device.index}`,
      write(writer) {
        writeAddress(writer, device, address);
        if (ipOf(address).family === 'IPv6') writer.data(IFA_CACHEINFO, neverPreferred());
      },
    }));
  }

  removeAddresses(device: Device, addresses: readonly string[]): Promise<AddressFailure[]> {
    return this.#alter(addresses, ['EADDRNOTAVAIL', 'ENXIO'], (address) => ({
      type: RTM_DELADDR,
      name: `deleting address ${address} from interface ${device.index}`,
      write: (writer) => writeAddress(writer, device, address),
    }));
  }

  close(): void {
    this.#socket.close();
  }

  async #alter(
    addresses: readonly string[],
    harmless: readonly string[],
    requestOf: (address: string) => NetlinkRequest,
  ): Promise<AddressFailure[]> {
    const failures: AddressFailure[] = [];
    for (const some of inGroups(addresses, requestsAtOnce)) {
      const errors = await this.#socket.requestAll(some.map(requestOf));
      for (const [i, address] of some.entries()) {
        const error = errors[i];
        if (error && !harmless.includes(error.code)) failures.push({ address, error });
      }
    }
    return failures;
  }
}

function linkRequest(type: number, action: string, name: string, kind?: string): NetlinkRequest {
  return {
    type,
    name: action,
    write(writer) {
      writer.raw(new Uint8Array(linkHeaderLength));
      writer.string(IFLA_IFNAME, name);
      if (kind === undefined) return;
      const info = writer.beginNested(IFLA_LINKINFO);
      writer.string(IFLA_INFO_KIND, kind);
      writer.endNested(info);
    },
  };
}

function readDevice(message: NetlinkMessage): Device {
  const header = message.payload();
  if (header.length < linkHeaderLength)
    throw new NetlinkFormatError(`link message of ${header.length} bytes`);
  const info = new AttributeMap(message.attributes(linkHeaderLength)).nested(IFLA_LINKINFO);
  return {
    index: new DataView(header.buffer, header.byteOffset, header.length).getInt32(4, hostLittleEndian),
    kind: (info && new AttributeMap(info).string(IFLA_INFO_KIND)) ?? '',
  };
}

/** struct ifaddrmsg (family, prefix length, flags, scope, interface) and the address, which is both ends. */
function writeAddress(writer: MessageWriter, { index }: Device, address: string): void {
  const { family, bytes } = ipOf(address);
  const header = Uint8Array.of(family === 'IPv4' ? AF_INET : AF_INET6, bitsOf(family), 0, 0, 0, 0, 0, 0);
  new DataView(header.buffer).setUint32(4, index, hostLittleEndian);
  writer.raw(header);
  writer.data(IFA_LOCAL, bytes);
  writer.data(IFA_ADDRESS, bytes);
}

/** struct ifa_cacheinfo: preferred for no time, valid for ever, and two time stamps that are the kernel's. */
function neverPreferred(): Uint8Array {
  const info = new Uint8Array(16);
  new DataView(info.buffer).setUint32(4, 0xffffffff, hostLittleEndian);
  return info;
}

function ipOf(address: string): IP {
  const ip = parseIP(address);
  if (!ip) throw new RangeError(`${JSON.stringify(address)} is no IP address`);
  return ip;
}
