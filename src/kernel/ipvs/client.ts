import { inGroups } from '../../lib/groups.ts';
import type { Libc } from '../../native/libc.ts';
import { NETLINK_GENERIC } from '../netlink/constants.ts';
import { isNetlinkError, type NetlinkError } from '../netlink/error.ts';
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
  isForeign,
  type ListedRealServer,
  type ListedVirtualServer,
  type VirtualServer,
  type VirtualServerCounts,
  type VirtualServerKey,
} from './objects.ts';

/** This kernel has no IPVS, not even as a module that it could load by itself. */
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
 * IPVS in this network namespace. Rejects with NetlinkError when the kernel refuses: EEXIST for what is there
 * already, ESRCH for a virtual server that is not, ENOENT for an unknown scheduler or real server.
 */
export interface IpvsClient {
  /**
   * All virtual servers of both families. The kernel does not tell when others change them meanwhile: one that was
   * there all the time may then be missing or come twice.
   */
  listServers(): Promise<ListedVirtualServer[]>;
  /** What all of them counted, of both families. */
  listCounts(): Promise<VirtualServerCounts[]>;
  /** Undefined when there is none. */
  getServer(key: VirtualServerKey): Promise<VirtualServer | undefined>;
  /** Empty when there is no such virtual server. */
  listRealServers(server: VirtualServerKey): Promise<ListedRealServer[]>;
  /** Applies changes in order. A refused one does not keep the others from being applied. */
  apply(operations: readonly IpvsOperation[]): Promise<IpvsFailure[]>;
  setTimeouts(timeouts: IpvsTimeouts): Promise<void>;
  getTimeouts(): Promise<IpvsTimeouts>;
  /** Removes every virtual server, whoever made it. */
  flush(): Promise<void>;
  close(): void;
}

/** Changes sent at a time: their acknowledgements must fit into the receive buffer. */
const operationsAtOnce = 512;

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
    const request = this.#request('listing virtual servers', (writer) => codec.writeServerQuery(writer));
    return this.#list(request, codec.readServer);
  }

  listCounts(): Promise<VirtualServerCounts[]> {
    const request = this.#request('reading counters of virtual servers', (writer) =>
      codec.writeServerQuery(writer),
    );
    return this.#list(request, codec.readServerCounts);
  }

  async getServer(key: VirtualServerKey): Promise<VirtualServer | undefined> {
    const name = `reading virtual server ${formatVirtualServer(key)}`;
    const request = this.#request(name, (writer) => codec.writeServerQuery(writer, key));
    let found: ListedVirtualServer | undefined;
    try {
      await this.#socket.request(request, (message) => {
        found = this.#read(message, codec.readServer) ?? found;
      });
    } catch (error) {
      if (isNetlinkError(error, 'ESRCH')) return undefined;
      throw error;
    }
    return found && !isForeign(found) ? found : undefined;
  }

  listRealServers(server: VirtualServerKey): Promise<ListedRealServer[]> {
    const name = `listing real servers of ${formatVirtualServer(server)}`;
    const request = this.#request(name, (writer) => codec.writeRealServerQuery(writer, server));
    // There are thousands of these dumps, most of a few lines.
    return this.#list(request, codec.readRealServer, true);
  }

  async apply(operations: readonly IpvsOperation[]): Promise<IpvsFailure[]> {
    const failures: IpvsFailure[] = [];
    for (const some of inGroups(operations, operationsAtOnce)) {
      const errors = await this.#socket.requestAll(some.map((operation) => this.#change(operation)));
      for (const [i, operation] of some.entries()) {
        const error = errors[i];
        if (error) failures.push({ operation, error });
      }
    }
    return failures;
  }

  setTimeouts(timeouts: IpvsTimeouts): Promise<void> {
    const write = (writer: MessageWriter) => codec.writeTimeouts(writer, timeouts);
    return this.#socket.request(this.#request('setting IPVS timeouts', write));
  }

  async getTimeouts(): Promise<IpvsTimeouts> {
    let timeouts: IpvsTimeouts | undefined;
    await this.#socket.request(this.#request('reading IPVS timeouts', codec.writeTimeoutQuery), (message) => {
      timeouts = this.#read(message, codec.readTimeouts) ?? timeouts;
    });
    return timeouts ?? { tcp: 0, tcpFin: 0, udp: 0 };
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

  /** Thousands of changes are described only when they fail. */
  #change(operation: IpvsOperation): NetlinkRequest {
    return {
      type: this.#family,
      get name() {
        return describeOperation(operation);
      },
      write: (writer) => codec.writeOperation(writer, operation),
    };
  }

  #read<T>(message: NetlinkMessage, read: (message: NetlinkMessage) => T | undefined): T | undefined {
    return message.type === this.#family ? read(message) : undefined;
  }

  async #list<T>(
    request: NetlinkRequest,
    read: (message: NetlinkMessage) => T | undefined,
    isShort = false,
  ): Promise<T[]> {
    const found: T[] = [];
    await this.#socket.dump(request, {
      message: (message) => {
        const object = this.#read(message, read);
        if (object !== undefined) found.push(object);
      },
      restart: () => {
        found.length = 0;
      },
      isShort,
    });
    return found;
  }
}
