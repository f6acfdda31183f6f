import { inGroups } from '../../lib/groups.ts';
import type { Libc } from '../../native/libc.ts';
import { NETLINK_NETFILTER } from '../netlink/constants.ts';
import { isNetlinkError, type NetlinkError } from '../netlink/error.ts';
import { type NetlinkRequest, NetlinkSocket, type SocketOptions } from '../netlink/socket.ts';
import { type NetlinkTransport, openTransport } from '../netlink/transport.ts';
import type { MessageWriter } from '../netlink/writer.ts';
import { CT_DELETE, CT_GET, CT_NEW, readFlow, writeDelete, writeFilter } from './codec.ts';
import { type Flow, type FlowFilter, matchesFilter } from './flow.ts';

/** Is told of flows one by one; none is kept here, because a node can track millions. */
export interface FlowVisitor {
  flow(flow: Flow): void;
  /** The walk was disturbed and begins again: flows seen so far will come once more. */
  restart(): void;
  /** Asked every now and then: the walk goes on when the promise is settled, and fails if that is rejected. */
  pause?(): Promise<void> | undefined;
}

export interface DeleteResult {
  /** Entries that are gone: deleted now, or no longer there. */
  readonly deleted: number;
  /** Entries that could not be deleted, and why. */
  readonly failures: readonly { readonly flow: Flow; readonly error: NetlinkError }[];
}

/** The connection tracking table of this network namespace. */
export interface ConntrackClient {
  /** Rejects with EINTR (NetlinkError) when the walk was disturbed five times in a row. */
  forEachFlow(filter: FlowFilter, visitor: FlowVisitor): Promise<void>;
  /** Does not wait for a walk under way. */
  deleteFlows(flows: readonly Flow[]): Promise<DeleteResult>;
  close(): void;
}

/** Requests sent at a time: their acknowledgements must fit into the receive buffer. */
const deletesAtOnce = 256;

export function openConntrackClient(libc: Libc, options: SocketOptions): ConntrackClient {
  return new NetlinkConntrackClient(() => openTransport(libc, NETLINK_NETFILTER), options);
}

/** ctnetlink: one socket walks, one deletes, so that entries can be deleted during a walk. */
export class NetlinkConntrackClient implements ConntrackClient {
  readonly #walks: NetlinkSocket;
  readonly #deletions: NetlinkSocket;

  constructor(open: () => NetlinkTransport, options: SocketOptions) {
    this.#walks = new NetlinkSocket(open(), options);
    this.#deletions = new NetlinkSocket(open(), options);
  }

  forEachFlow(filter: FlowFilter, visitor: FlowVisitor): Promise<void> {
    if (filter.originalDestinationPort !== undefined && filter.protocol === undefined) {
      throw new RangeError('a filter by port must name the protocol');
    }
    const request = {
      type: CT_GET,
      name: 'list conntrack entries',
      write: (writer: MessageWriter) => writeFilter(writer, filter),
    };
    return this.#walks.dump(request, {
      message: (message) => {
        const flow = message.type === CT_NEW ? readFlow(message) : undefined;
        if (flow && matchesFilter(flow, filter)) visitor.flow(flow);
      },
      restart: () => visitor.restart(),
      pause: () => visitor.pause?.(),
    });
  }

  async deleteFlows(flows: readonly Flow[]): Promise<DeleteResult> {
    const failures: { flow: Flow; error: NetlinkError }[] = [];
    for (const some of inGroups(flows, deletesAtOnce)) {
      const errors = await this.#deletions.requestAll(some.map(deleteRequest));
      for (const [i, flow] of some.entries()) {
        const error = errors[i];
        if (error && !isNetlinkError(error, 'ENOENT')) failures.push({ flow, error });
      }
    }
    return { deleted: flows.length - failures.length, failures };
  }

  close(): void {
    this.#walks.close();
    this.#deletions.close();
  }
}

function deleteRequest(flow: Flow): NetlinkRequest {
  return {
    type: CT_DELETE,
    name: 'delete conntrack entry',
    write: (writer: MessageWriter) => writeDelete(writer, flow),
  };
}
