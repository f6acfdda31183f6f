import { type IP, parseIP } from '../../model/ip.ts';
import { AF_INET, AF_INET6, type Libc } from '../../native/libc.ts';
import { NETLINK_ROUTE } from '../netlink/constants.ts';
import { NetlinkError } from '../netlink/error.ts';
import { NetlinkSocket, type SocketOptions } from '../netlink/socket.ts';
import { type NetlinkTransport, openTransport } from '../netlink/transport.ts';
import type { MessageWriter } from '../netlink/writer.ts';
import { NetlinkRouteClient } from './client.ts';

const RTM_NEWROUTE = 24;
const RTM_GETROUTE = 26;
/** struct rtmsg: family, destination and source prefix, TOS, table, protocol, scope, type, flags. */
const routeHeaderLength = 12;
const RTA_DST = 1;
const RTA_OIF = 4;

/** Finds the interface that packets to an address leave by. Rejects with SystemError when there is no such socket. */
export interface RouteLookup {
  /** The name of the interface; '' when no route leads there. */
  interfaceTowards(address: string): Promise<string>;
  close(): void;
}

export function openRouteLookup(libc: Libc, options: SocketOptions): RouteLookup {
  return new NetlinkRouteLookup(() => openTransport(libc, NETLINK_ROUTE), options);
}

/** Asks the kernel's routing over rtnetlink. */
export class NetlinkRouteLookup implements RouteLookup {
  readonly #socket: NetlinkSocket;
  readonly #links: NetlinkRouteClient;

  constructor(open: () => NetlinkTransport, options: SocketOptions) {
    this.#socket = new NetlinkSocket(open(), options);
    this.#links = new NetlinkRouteClient(open, options);
  }

  async interfaceTowards(address: string): Promise<string> {
    const ip = parseIP(address);
    const index = ip ? await this.#outgoingIndex(ip) : undefined;
    if (index === undefined) return '';
    const links = await this.#links.listLinks();
    return links.find((link) => link.index === index)?.name ?? '';
  }

  close(): void {
    this.#socket.close();
    this.#links.close();
  }

  async #outgoingIndex(ip: IP): Promise<number | undefined> {
    const header = new Uint8Array(routeHeaderLength);
    header[0] = ip.family === 'IPv4' ? AF_INET : AF_INET6;
    header[1] = ip.bytes.length * 8;
    let found: number | undefined;
    const request = {
      name: 'look up route',
      type: RTM_GETROUTE,
      write: (writer: MessageWriter) => {
        writer.raw(header);
        writer.data(RTA_DST, ip.bytes);
      },
    };
    try {
      await this.#socket.request(request, (message) => {
        if (message.type !== RTM_NEWROUTE) return;
        for (const reader = message.attributes(routeHeaderLength); reader.next(); ) {
          if (reader.type === RTA_OIF) found = reader.u32();
        }
      });
    } catch (error) {
      // No route: unreachable, prohibited or unknown.
      if (!(error instanceof NetlinkError)) throw error;
    }
    return found;
  }
}
