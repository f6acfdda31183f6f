import type { Libc } from '../../native/libc.ts';
import { NETLINK_GENERIC } from '../netlink/constants.ts';
import type { NetlinkError } from '../netlink/error.ts';
import { resolveFamily } from '../netlink/generic.ts';
import type { NetlinkMessage } from '../netlink/reader.ts';
import { type NetlinkRequest, NetlinkSocket, type SocketOptions } from '../netlink/socket.ts';
import { type NetlinkTransport, openTransport } from '../netlink/transport.ts';
import type { MessageWriter } from '../netlink/writer.ts';
import * as codec from './codec.ts';
import { IPVS_FAMILY } from './constants.ts';
import {
  describeOperation,
  formatVirtualServer,
  type IpvsOperation,
  type IpvsTimeouts,
  type ListedRealServer,
  type ListedVirtualServer,
  type VirtualServerKey,
} from './objects.ts';

/** This kernel has no IPVS, and no module that it loads on demand. */
export class IpvsUnavailableError extends Error {
  readonly code = 'ERR_IPVS_UNAVAILABLE';

  constructor() {
    super('IPVS is not supported by this kernel: generic netlink family IPVS not found (module ip_vs)');
    this.name = 'IpvsUnavailableError';
  }
}

/** A change that the kernel refused. */
export interface IpvsFailure {
  readonly operation: IpvsOperation;
  readonly error: NetlinkError;
}

/**
 * IPVS in this network namespace. Rejects with NetlinkError when the kernel refuses: EEXIST for an object that exists,
 * ESRCH for a virtual server that does not, ENOENT for an unknown scheduler or real server.
 */
export interface IpvsClient {
  /**
   * All virtual servers of both families. The kernel does not report changes during the dump: when another program
   * adds or deletes servers meanwhile, an unrelated one may be missing or listed twice.
   */
  listServers(): Promise<ListedVirtualServer[]>;
  /** Empty when there is no such virtual server. */
  listRealServers(server: VirtualServerKey): Promise<ListedRealServer[]>;
  /** Applies changes in order. A refused change does not stop the others. */
  apply(operations: readonly IpvsOperation[]): Promise<IpvsFailure[]>;
  setTimeouts(timeouts: IpvsTimeouts): Promise<void>;
  /** Removes every virtual server, also those of other programs. */
  flush(): Promise<void>;
  close(): void;
}

/** Opens a client; rejects with IpvsUnavailableError when the kernel has no IPVS. */
export function openIpvsClient(libc: Libc, options: SocketOptions): Promise<IpvsClient> {
  return NetlinkIpvsClient.connect(openTransport(libc, NETLINK_GENERIC), options);
}

export class NetlinkIpvsClient implements IpvsClient {
  readonly #socket: NetlinkSocket;
  readonly #family: number;

  private constructor(socket: NetlinkSocket, family: number) {
    this.#socket = socket;
    this.#family = family;
  }

  static async connect(transport: NetlinkTransport, options: SocketOptions): Promise<NetlinkIpvsClient> {
    const socket = new NetlinkSocket(transport, options);
    try {
      const family = await resolveFamily(socket, IPVS_FAMILY);
      if (family === undefined) throw new IpvsUnavailableError();
      return new NetlinkIpvsClient(socket, family);
    } catch (error) {
      socket.close();
      throw error;
    }
  }

  listServers(): Promise<ListedVirtualServer[]> {
    return this.#list('listing virtual servers', codec.writeServerQuery, codec.readServer);
  }

  listRealServers(server: VirtualServerKey): Promise<ListedRealServer[]> {
    const name = `listing real servers of ${formatVirtualServer(server)}`;
    const write = (writer: MessageWriter) => codec.writeRealServerQuery(writer, server);
    // There are thousands of these dumps, most of a few real servers.
    return this.#list(name, write, codec.readRealServer, true);
  }

  async apply(operations: readonly IpvsOperation[]): Promise<IpvsFailure[]> {
    const refusals = await this.#socket.requestEach(operations, (operation) => this.#change(operation));
    return refusals.map(({ item, error }) => ({ operation: item, error }));
  }

  setTimeouts(timeouts: IpvsTimeouts): Promise<void> {
    const write = (writer: MessageWriter) => codec.writeTimeouts(writer, timeouts);
    return this.#socket.request(this.#request('setting IPVS timeouts', write));
  }

  flush(): Promise<void> {
    return this.#socket.request(this.#request('removing all virtual servers', codec.writeFlush));
  }

  close(): void {
    this.#socket.close();
  }

  #request(name: string, write: (writer: MessageWriter) => void): NetlinkRequest {
    return { type: this.#family, name, write };
  }

  /** A change is described only when it fails: there may be thousands. */
  #change(operation: IpvsOperation): NetlinkRequest {
    return {
      type: this.#family,
      get name() {
        return describeOperation(operation);
      },
      write: (writer) => codec.writeOperation(writer, operation),
    };
  }

  #list<T>(
    name: string,
    write: (writer: MessageWriter) => void,
    read: (message: NetlinkMessage) => T | undefined,
    isShort = false,
  ): Promise<T[]> {
    const readOwn = (message: NetlinkMessage) => (message.type === this.#family ? read(message) : undefined);
    return this.#socket.list(this.#request(name, write), readOwn, { isShort });
  }
}
