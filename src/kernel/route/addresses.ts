import type { Libc } from '../../native/libc.ts';
import { NETLINK_ROUTE } from '../netlink/constants.ts';
import type { SocketOptions } from '../netlink/socket.ts';
import { type NetlinkTransport, openTransport } from '../netlink/transport.ts';
import { type Closable, NetlinkRouteClient } from './client.ts';

/** The addresses on the interfaces of this network namespace. Rejects with NetlinkError or SystemError. */
export interface InterfaceAddresses {
  /** Canonical texts of the addresses of both families, without duplicates. */
  list(): Promise<string[]>;
  /** Calls back after an address was added or removed, and after notifications were lost. */
  watch(onChange: () => void, onFailure: (error: Error) => void): Closable;
  close(): void;
}

export function openInterfaceAddresses(libc: Libc, options: SocketOptions): InterfaceAddresses {
  return new NetlinkAddresses(() => openTransport(libc, NETLINK_ROUTE), options);
}

/** Addresses over rtnetlink; calls `open` once for requests and once for every watch. */
export class NetlinkAddresses implements InterfaceAddresses {
  readonly #route: NetlinkRouteClient;

  constructor(open: () => NetlinkTransport, options: SocketOptions) {
    this.#route = new NetlinkRouteClient(open, options);
  }

  async list(): Promise<string[]> {
    const addresses = await this.#route.listAddresses();
    return [...new Set(addresses.map(({ ip }) => ip))];
  }

  watch(onChange: () => void, onFailure: (error: Error) => void): Closable {
    return this.#route.watchAddresses(onChange, onFailure);
  }

  close(): void {
    this.#route.close();
  }
}
