import type { Libc } from '../../native/libc.ts';
import { NETLINK_ROUTE } from '../netlink/constants.ts';
import type { NetlinkMessage } from '../netlink/reader.ts';
import type { SocketOptions } from '../netlink/socket.ts';
import { type NetlinkSubscription, subscribe } from '../netlink/subscription.ts';
import { type NetlinkTransport, openTransport } from '../netlink/transport.ts';
import { addressGroups, type InterfaceAddress, RTM_DELADDR, RTM_NEWADDR, readAddress } from './address.ts';
import { NetlinkRouteClient } from './client.ts';

interface Change {
  readonly address: InterfaceAddress;
  readonly isGone: boolean;
}

/**
 * The addresses of this network namespace, listed once and kept current by notifications: a node in ipvs mode has
 * thousands, which would otherwise be listed whenever a service changes. After lost notifications the next call lists
 * them again; after the subscription failed every call does.
 */
export class AddressBook {
  readonly #route: NetlinkRouteClient;
  readonly #subscription: NetlinkSubscription;
  readonly #known = new Map<string, InterfaceAddress>();
  #isCurrent = false;
  #hasFailed = false;
  #reading: Promise<void> | undefined;
  /** Changes during a list, which may or may not include them. */
  #changesDuringList: Change[] = [];

  constructor(open: () => NetlinkTransport, options: SocketOptions) {
    const lost = () => {
      this.#isCurrent = false;
    };
    this.#subscription = subscribe(open(), addressGroups, {
      message: (message) => this.#onNotification(message),
      overrun: lost,
      failed: () => {
        this.#hasFailed = true;
        lost();
      },
    });
    this.#route = new NetlinkRouteClient(open, options);
  }

  static open(libc: Libc, options: SocketOptions): AddressBook {
    return new AddressBook(() => openTransport(libc, NETLINK_ROUTE), options);
  }

  /** Addresses of both families on all interfaces. Rejects with NetlinkError or SystemError. */
  async list(): Promise<readonly InterfaceAddress[]> {
    // While a list is under way, #isCurrent is true already but #known is not filled yet.
    if (this.#reading || !this.#isCurrent || this.#hasFailed) {
      this.#reading ??= this.#read().finally(() => {
        this.#reading = undefined;
      });
      await this.#reading;
    }
    return [...this.#known.values()];
  }

  close(): void {
    this.#subscription.close();
    this.#route.close();
  }

  async #read(): Promise<void> {
    this.#changesDuringList = [];
    // Set before the list begins, because lost notifications during the list reset it.
    this.#isCurrent = true;
    try {
      const listed = await this.#route.listAddresses();
      this.#known.clear();
      for (const address of listed) this.#known.set(keyOf(address), address);
    } catch (error) {
      this.#isCurrent = false;
      throw error;
    }
    for (const change of this.#changesDuringList) this.#apply(change);
  }

  #onNotification(message: NetlinkMessage): void {
    if (message.type !== RTM_NEWADDR && message.type !== RTM_DELADDR) return;
    const address = readAddress(message);
    if (!address) return;
    const change = { address, isGone: message.type === RTM_DELADDR };
    if (this.#reading) this.#changesDuringList.push(change);
    else this.#apply(change);
  }

  #apply({ address, isGone }: Change): void {
    if (isGone) this.#known.delete(keyOf(address));
    else this.#known.set(keyOf(address), address);
  }
}

function keyOf({ interfaceIndex, ip, prefix }: InterfaceAddress): string {
  return `${interfaceIndex} ${ip}/${prefix}`;
}
