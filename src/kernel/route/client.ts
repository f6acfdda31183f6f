import { parseIP } from '../../model/ip.ts';
import type { Libc } from '../../native/libc.ts';
import { AttributeMap } from '../netlink/attribute-map.ts';
import { NETLINK_ROUTE } from '../netlink/constants.ts';
import { NetlinkError } from '../netlink/error.ts';
import { type NetlinkRequest, NetlinkSocket, type SocketOptions } from '../netlink/socket.ts';
import { subscribe } from '../netlink/subscription.ts';
import { type NetlinkTransport, openTransport } from '../netlink/transport.ts';
import { addressFamilies } from '../numbers.ts';
import {
  addressGroups,
  addressHeaderLength,
  type InterfaceAddress,
  RTM_DELADDR,
  RTM_GETADDR,
  RTM_NEWADDR,
  readAddress,
} from './address.ts';
import {
  type Link,
  linkGroups,
  linkHeaderLength,
  RTM_DELLINK,
  RTM_GETLINK,
  RTM_NEWLINK,
  readLink,
} from './link.ts';

const RTM_NEWROUTE = 24;
const RTM_GETROUTE = 26;
/** struct rtmsg: family, destination and source prefix, TOS, table, protocol, scope, type, flags. */
const routeHeaderLength = 12;
const RTA_DST = 1;
const RTA_OIF = 4;

/** An open socket or subscription. */
export interface Closable {
  close(): void;
}

/** Interfaces, addresses and routes of this network namespace. Rejects with NetlinkError or SystemError. */
export interface RouteClient {
  /** Addresses of both families on all interfaces. */
  listAddresses(): Promise<InterfaceAddress[]>;
  listLinks(): Promise<Link[]>;
  /** Calls back after an address was added or removed, and after notifications were lost. */
  watchAddresses(onChange: () => void, onFailure: (error: Error) => void): Closable;
  /** Calls back after an interface was added, changed or removed, and after notifications were lost. */
  watchLinks(onChange: () => void, onFailure: (error: Error) => void): Closable;
  /** Name of the interface by which packets to an address leave; '' when no route leads there. */
  interfaceTowards(address: string): Promise<string>;
  close(): void;
}

export function openRouteClient(libc: Libc, options: SocketOptions): RouteClient {
  return new NetlinkRouteClient(() => openTransport(libc, NETLINK_ROUTE), options);
}

/** rtnetlink; calls `open` once for requests and once for every watch. */
export class NetlinkRouteClient implements RouteClient {
  readonly #open: () => NetlinkTransport;
  readonly #socket: NetlinkSocket;
  readonly #watches = new Set<Closable>();

  constructor(open: () => NetlinkTransport, options: SocketOptions) {
    this.#open = open;
    this.#socket = new NetlinkSocket(open(), options);
  }

  listAddresses(): Promise<InterfaceAddress[]> {
    return this.#socket.list(requestOf('list addresses', RTM_GETADDR, addressHeaderLength), (message) =>
      message.type === RTM_NEWADDR ? readAddress(message) : undefined,
    );
  }

  listLinks(): Promise<Link[]> {
    return this.#socket.list(requestOf('list links', RTM_GETLINK, linkHeaderLength), readLink);
  }

  watchAddresses(onChange: () => void, onFailure: (error: Error) => void): Closable {
    return this.#watch(addressGroups, [RTM_NEWADDR, RTM_DELADDR], onChange, onFailure);
  }

  watchLinks(onChange: () => void, onFailure: (error: Error) => void): Closable {
    return this.#watch(linkGroups, [RTM_NEWLINK, RTM_DELLINK], onChange, onFailure);
  }

  #watch(
    groups: readonly number[],
    types: readonly number[],
    onChange: () => void,
    onFailure: (error: Error) => void,
  ): Closable {
    const inner = subscribe(this.#open(), groups, {
      message: ({ type }) => {
        if (types.includes(type)) onChange();
      },
      overrun: onChange,
      failed: onFailure,
    });
    const watch = {
      close: () => {
        inner.close();
        this.#watches.delete(watch);
      },
    };
    this.#watches.add(watch);
    return watch;
  }

  async interfaceTowards(address: string): Promise<string> {
    const index = await this.#outgoingIndex(address);
    if (index === undefined) return '';
    const links = await this.listLinks();
    return links.find((link) => link.index === index)?.name ?? '';
  }

  close(): void {
    for (const watch of [...this.#watches]) watch.close();
    this.#socket.close();
  }

  async #outgoingIndex(address: string): Promise<number | undefined> {
    const ip = parseIP(address);
    if (!ip) return undefined;
    const header = new Uint8Array(routeHeaderLength);
    header[0] = addressFamilies[ip.family];
    header[1] = ip.bytes.length * 8;
    const request: NetlinkRequest = {
      name: 'look up route',
      type: RTM_GETROUTE,
      write: (writer) => {
        writer.raw(header);
        writer.data(RTA_DST, ip.bytes);
      },
    };
    let found: number | undefined;
    try {
      await this.#socket.request(request, (message) => {
        if (message.type === RTM_NEWROUTE) found = AttributeMap.of(message, routeHeaderLength).u32(RTA_OIF);
      });
    } catch (error) {
      // The kernel has several errno values for "no route": unreachable, prohibited, unknown.
      if (!(error instanceof NetlinkError)) throw error;
    }
    return found;
  }
}

/** A request for all objects: the family header is all zero. */
function requestOf(name: string, type: number, headerLength: number): NetlinkRequest {
  return { name, type, write: (writer) => writer.raw(new Uint8Array(headerLength)) };
}
