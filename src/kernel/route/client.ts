import type { Libc } from '../../native/libc.ts';
import { NETLINK_ROUTE } from '../netlink/constants.ts';
import type { NetlinkMessage } from '../netlink/reader.ts';
import { type NetlinkRequest, NetlinkSocket, type SocketOptions } from '../netlink/socket.ts';
import { subscribe } from '../netlink/subscription.ts';
import { type NetlinkTransport, openTransport } from '../netlink/transport.ts';
import {
  addressHeaderLength,
  type InterfaceAddress,
  RTM_DELADDR,
  RTM_GETADDR,
  RTM_NEWADDR,
  RTNLGRP_IPV4_IFADDR,
  RTNLGRP_IPV6_IFADDR,
  readAddress,
} from './address.ts';
import {
  type Link,
  linkHeaderLength,
  RTM_DELLINK,
  RTM_GETLINK,
  RTM_NEWLINK,
  RTNLGRP_LINK,
  readLink,
} from './link.ts';

/** Something that was opened and is to be closed. */
export interface Closable {
  close(): void;
}

/** Interfaces and addresses of this network namespace. Rejects with NetlinkError or SystemError. */
export interface RouteClient {
  /** Addresses of both families on all interfaces. */
  listAddresses(): Promise<InterfaceAddress[]>;
  listLinks(): Promise<Link[]>;
  /** Calls back after an address was added or removed, and when that may have been missed. */
  watchAddresses(onChange: () => void, onFailure: (error: Error) => void): Closable;
  /** The same for interfaces; also when one goes up or down. */
  watchLinks(onChange: () => void, onFailure: (error: Error) => void): Closable;
  close(): void;
}

export function openRouteClient(libc: Libc, options: SocketOptions): RouteClient {
  return new NetlinkRouteClient(() => openTransport(libc, NETLINK_ROUTE), options);
}

/** rtnetlink; `open` is called once for requests and once for every watch. */
export class NetlinkRouteClient implements RouteClient {
  readonly #open: () => NetlinkTransport;
  readonly #socket: NetlinkSocket;
  readonly #watches = new Set<Closable>();

  constructor(open: () => NetlinkTransport, options: SocketOptions) {
    this.#open = open;
    this.#socket = new NetlinkSocket(open(), options);
  }

  listAddresses(): Promise<InterfaceAddress[]> {
    const request = requestOf('list addresses', RTM_GETADDR, addressHeaderLength);
    return this.#list(request, RTM_NEWADDR, readAddress);
  }

  listLinks(): Promise<Link[]> {
    return this.#list(requestOf('list links', RTM_GETLINK, linkHeaderLength), RTM_NEWLINK, readLink);
  }

  watchAddresses(onChange: () => void, onFailure: (error: Error) => void): Closable {
    const groups = [RTNLGRP_IPV4_IFADDR, RTNLGRP_IPV6_IFADDR];
    return this.#watch(groups, [RTM_NEWADDR, RTM_DELADDR], onChange, onFailure);
  }

  watchLinks(onChange: () => void, onFailure: (error: Error) => void): Closable {
    return this.#watch([RTNLGRP_LINK], [RTM_NEWLINK, RTM_DELLINK], onChange, onFailure);
  }

  close(): void {
    for (const watch of [...this.#watches]) watch.close();
    this.#socket.close();
  }

  async #list<T>(
    request: NetlinkRequest,
    type: number,
    read: (message: NetlinkMessage) => T | undefined,
  ): Promise<T[]> {
    const found: T[] = [];
    await this.#socket.dump(request, {
      message: (message) => {
        const object = message.type === type ? read(message) : undefined;
        if (object !== undefined) found.push(object);
      },
      restart: () => {
        found.length = 0;
      },
    });
    return found;
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
}

/** A request for everything: the family header is all zero. */
function requestOf(name: string, type: number, headerLength: number): NetlinkRequest {
  return { name, type, write: (writer) => writer.raw(new Uint8Array(headerLength)) };
}
