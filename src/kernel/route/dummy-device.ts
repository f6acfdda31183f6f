import { bitsOf, type IP, parseIP } from '../../model/ip.ts';
import { hostLittleEndian } from '../../native/byte-order.ts';
import type { Libc } from '../../native/libc.ts';
import { NETLINK_ROUTE, NLM_F_CREATE, NLM_F_EXCL } from '../netlink/constants.ts';
import { isNetlinkError, type NetlinkError } from '../netlink/error.ts';
import { type NetlinkRequest, NetlinkSocket, type SocketOptions } from '../netlink/socket.ts';
import { type NetlinkTransport, openTransport } from '../netlink/transport.ts';
import type { MessageWriter } from '../netlink/writer.ts';
import { addressFamilies } from '../numbers.ts';
import { IFA_ADDRESS, IFA_LOCAL, RTM_DELADDR, RTM_NEWADDR } from './address.ts';
import {
  IFLA_IFNAME,
  IFLA_INFO_KIND,
  IFLA_LINKINFO,
  type Link,
  linkHeaderLength,
  RTM_DELLINK,
  RTM_GETLINK,
  RTM_NEWLINK,
  readLink,
} from './link.ts';

const IFA_CACHEINFO = 6;
const dummyKind = 'dummy';

/** An interface of any kind. */
export type Device = Pick<Link, 'index' | 'kind'>;

/** An address that the kernel did not add or remove. */
export interface AddressFailure {
  readonly address: string;
  readonly error: NetlinkError;
}

/**
 * Dummy interfaces, which only hold addresses. They stay down: the node accepts packets to their addresses all the
 * same, and does not answer ARP for them. Rejects with NetlinkError.
 */
export interface DummyDevices {
  /** Any interface with this name; undefined when there is none. */
  find(name: string): Promise<Device | undefined>;
  /** Creates a dummy interface. Rejects with EEXIST when the name is taken. */
  create(name: string): Promise<void>;
  /** Removes a dummy interface; returns whether it existed. Rejects when the interface is of another kind. */
  remove(name: string): Promise<boolean>;
  /**
   * Adds addresses with full prefix length; existing ones count as added. IPv6 addresses are added as deprecated, so
   * that the kernel does not use them as source addresses: it considers all interfaces, also those that are down.
   */
  addAddresses(device: Device, addresses: readonly string[]): Promise<AddressFailure[]>;
  /** Removes addresses that `addAddresses` added; missing ones count as removed. */
  removeAddresses(device: Device, addresses: readonly string[]): Promise<AddressFailure[]>;
  close(): void;
}

export function openDummyDevices(libc: Libc, options: SocketOptions): DummyDevices {
  return new NetlinkDummyDevices(openTransport(libc, NETLINK_ROUTE), options);
}

export class NetlinkDummyDevices implements DummyDevices {
  readonly #socket: NetlinkSocket;

  constructor(transport: NetlinkTransport, options: SocketOptions) {
    this.#socket = new NetlinkSocket(transport, options);
  }

  find(name: string): Promise<Device | undefined> {
    const request = linkRequest(RTM_GETLINK, `finding interface ${name}`, name);
    return this.#socket.find(request, 'ENODEV', readLink);
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
    const refusals = await this.#socket.requestEach(addresses, requestOf);
    return refusals
      .filter(({ error }) => !harmless.includes(error.code))
      .map(({ item, error }) => ({ address: item, error }));
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

/** Writes struct ifaddrmsg and the address, as both the local and the peer address. */
function writeAddress(writer: MessageWriter, { index }: Device, address: string): void {
  const { family, bytes } = ipOf(address);
  const header = Uint8Array.of(addressFamilies[family], bitsOf(family), 0, 0, 0, 0, 0, 0);
  new DataView(header.buffer).setUint32(4, index, hostLittleEndian);
  writer.raw(header);
  writer.data(IFA_LOCAL, bytes);
  writer.data(IFA_ADDRESS, bytes);
}

/** struct ifa_cacheinfo: preferred for 0 seconds, valid forever, and two time stamps that the kernel fills in. */
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
