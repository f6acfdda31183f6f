import type { Libc } from '../../native/libc.ts';
import { NETLINK_SOCK_DIAG } from '../netlink/constants.ts';
import { NetlinkSocket, type SocketOptions } from '../netlink/socket.ts';
import { type NetlinkTransport, openTransport } from '../netlink/transport.ts';
import { SOCK_DESTROY, type SocketAddresses, writeTcpSocket } from './codec.ts';

/** The sockets of processes in this network namespace. */
export interface SocketClient {
  /**
   * Ends TCP connections: their owners get the error ECONNABORTED at once. Returns how many it ended; sockets that do not
   * exist do not count. Rejects with NetlinkError: EOPNOTSUPP when the kernel cannot, EPERM without CAP_NET_ADMIN.
   */
  destroyTCP(sockets: readonly SocketAddresses[]): Promise<number>;
  close(): void;
}

export function openSocketClient(libc: Libc, options: SocketOptions): SocketClient {
  return new NetlinkSocketClient(openTransport(libc, NETLINK_SOCK_DIAG), options);
}

export class NetlinkSocketClient implements SocketClient {
  readonly #socket: NetlinkSocket;

  constructor(transport: NetlinkTransport, options: SocketOptions) {
    this.#socket = new NetlinkSocket(transport, options);
  }

  async destroyTCP(sockets: readonly SocketAddresses[]): Promise<number> {
    const refusals = await this.#socket.requestEach(sockets, (socket) => ({
      type: SOCK_DESTROY,
      name: 'destroy TCP socket',
      write: (writer) => writeTcpSocket(writer, socket),
    }));
    const failure = refusals.find(({ error }) => error.code !== 'ENOENT');
    if (failure) throw failure.error;
    return sockets.length - refusals.length;
  }

  close(): void {
    this.#socket.close();
  }
}
