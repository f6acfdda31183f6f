import type { Libc } from '../../native/libc.ts';
import { NETLINK_NETFILTER, NLM_F_CREATE } from '../netlink/constants.ts';
import { type NetlinkRequest, NetlinkSocket, type SocketOptions } from '../netlink/socket.ts';
import { type NetlinkTransport, openTransport } from '../netlink/transport.ts';
import { ACCT_GET, ACCT_NEW, type AcctObject, readAcctObject, writeName } from './codec.ts';

/** Named packet counters of this network namespace. Rejects with NetlinkError when the kernel refuses. */
export interface AcctClient {
  /** Undefined when there is no counter with this name. */
  get(name: string): Promise<AcctObject | undefined>;
  /** Creates a counter; rejects with EBUSY when it exists. */
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

  get(name: string): Promise<AcctObject | undefined> {
    return this.#socket.find(requestOf(ACCT_GET, 0, `get counter ${name}`, name), 'ENOENT', (message) =>
      message.type === ACCT_NEW ? readAcctObject(message) : undefined,
    );
  }

  create(name: string): Promise<void> {
    return this.#socket.request(requestOf(ACCT_NEW, NLM_F_CREATE, `create counter ${name}`, name));
  }

  close(): void {
    this.#socket.close();
  }
}

function requestOf(type: number, flags: number, action: string, counter: string): NetlinkRequest {
  return { type, flags, name: action, write: (writer) => writeName(writer, counter) };
}
