import type { Libc } from '../../native/libc.ts';
import { NETLINK_NETFILTER, NLM_F_CREATE } from '../netlink/constants.ts';
import { isNetlinkError } from '../netlink/error.ts';
import { NetlinkSocket, type SocketOptions } from '../netlink/socket.ts';
import { type NetlinkTransport, openTransport } from '../netlink/transport.ts';
import { ACCT_GET, ACCT_NEW, type AcctObject, readAcctObject, writeName } from './codec.ts';

/** Named packet counters of this network namespace. Rejects with NetlinkError when the kernel refuses. */
export interface AcctClient {
  /** Undefined when there is no counter of that name. */
  get(name: string): Promise<AcctObject | undefined>;
  /** Makes a counter; rejects with EBUSY when there is one. */
  create(name: string): Promise<void>;
  close(): void;
}

export function openAcctClient(libc: Libc, options: SocketOptions): AcctClient {
  return new NetlinkAcctClient(openTransport(libc, NETLINK_NETFILTER), options);
}

export class NetlinkAcctClient implements AcctClient {
  readonly #socket: NetlinkSocket;

  constructor(transport: NetlinkTransport, options: SocketOptions) {
    this.#socket = new NetlinkSocket(transport, options);
  }

  async get(name: string): Promise<AcctObject | undefined> {
    let found: AcctObject | undefined;
    const request = requestOf(ACCT_GET, 0, `get counter ${name}`, name);
    try {
      await this.#socket.request(request, (message) => {
        if (message.type === ACCT_NEW) found = readAcctObject(message);
      });
    } catch (error) {
      if (!isNetlinkError(error, 'ENOENT')) throw error;
    }
    return found;
  }

  async create(name: string): Promise<void> {
    await this.#socket.request(requestOf(ACCT_NEW, NLM_F_CREATE, `create counter ${name}`, name));
  }

  close(): void {
    this.#socket.close();
  }
}

function requestOf(type: number, flags: number, title: string, name: string) {
  return {
    type,
    flags,
    name: title,
    write: (writer: Parameters<typeof writeName>[0]) => writeName(writer, name),
  };
}
