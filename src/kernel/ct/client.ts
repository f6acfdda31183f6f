import type { Family } from '../../model/ip.ts';
import type { Libc } from '../../native/libc.ts';
import { NETLINK_NETFILTER, NLM_F_REQUEST } from '../netlink/constants.ts';
import type { NetlinkError } from '../netlink/error.ts';
import { type NetlinkRequest, NetlinkSocket, type SocketOptions } from '../netlink/socket.ts';
import { type NetlinkTransport, openTransport, type TransportOptions } from '../netlink/transport.ts';
import { MessageWriter } from '../netlink/writer.ts';
import { readFlow, writeDelete, writeFilter, writeGet } from './codec.ts';
import { CT_DELETE, CT_GET, CT_NEW, entryBatch } from './constants.ts';
import { type Flow, type FlowFilter, type FlowIdentity, matchesFilter } from './flow.ts';
import { type FlowAddress, readTrackedFlow, TrackedFlow } from './tracked-flow.ts';

/** Receives flows one by one: a node can track millions, so the client collects none. */
export interface FlowVisitor {
  flow(flow: Flow): void;
  /** A change disturbed the walk, so it starts again: all flows seen so far will come again. */
  restart(): void;
  /** Called after every datagram. The walk continues when the promise resolves and fails when it rejects. */
  pause?(): Promise<void> | undefined;
}

/** As `FlowVisitor`, for those who look at many flows. */
export interface TrackedFlowVisitor {
  /** The record is filled again for the next flow. */
  flow(flow: TrackedFlow): void;
  /** See FlowVisitor. */
  restart(): void;
  pause?(): Promise<void> | undefined;
}

export interface DeleteResult {
  /** Number of entries that were deleted now or had gone before. */
  readonly deleted: number;
  /** Entries that the kernel did not delete, and why. */
  readonly failures: readonly { readonly flow: FlowIdentity; readonly error: NetlinkError }[];
}

/** The connection tracking table of this network namespace. */
export interface ConntrackClient {
  /** Visits every flow that passes the filter. Rejects with EINTR (NetlinkError) after ten disturbed walks. */
  forEachFlow(filter: FlowFilter, visitor: FlowVisitor): Promise<void>;
  /** As `forEachFlow`, for all flows of a family, with counters and TCP states, at a third of the cost. */
  forEachTrackedFlow(family: Family, visitor: TrackedFlowVisitor): Promise<void>;
  /**
   * Visits those of these flows that the table still has, as they are now. Does not wait for a walk under way. The record
   * is filled again for the next flow.
   */
  readAgain(flows: readonly FlowAddress[], visit: (flow: TrackedFlow) => void): Promise<void>;
  /** As `forEachTrackedFlow`. Kernels that ignore a condition let more flows of the family through. */
  forEachFilteredFlow(filter: FlowFilter, visitor: TrackedFlowVisitor): Promise<void>;
  /** Deletes entries. Does not wait for a walk under way. */
  deleteFlows(flows: readonly FlowIdentity[]): Promise<DeleteResult>;
  close(): void;
}

/** For one entry of IPv6. */
const bytesPerRequest = 112;

export function openConntrackClient(libc: Libc, options: SocketOptions): ConntrackClient {
  return new NetlinkConntrackClient((how) => openTransport(libc, NETLINK_NETFILTER, how), options);
}

/** ctnetlink over two sockets, one for walks and one for single entries, so that a walk does not delay these. */
export class NetlinkConntrackClient implements ConntrackClient {
  readonly #walks: NetlinkSocket;
  readonly #entries: NetlinkSocket;

  constructor(open: (how?: TransportOptions) => NetlinkTransport, options: SocketOptions) {
    this.#walks = new NetlinkSocket(open(), options);
    this.#entries = new NetlinkSocket(open({ batch: entryBatch }), options);
  }

  forEachFlow(filter: FlowFilter, visitor: FlowVisitor): Promise<void> {
    if (filter.originalDestinationPort !== undefined && filter.protocol === undefined) {
      throw new RangeError('a filter by port must name the protocol');
    }
    return this.#walks.dump(listRequest(filter), {
      message: (message) => {
        const flow = message.type === CT_NEW ? readFlow(message) : undefined;
        if (flow && matchesFilter(flow, filter)) visitor.flow(flow);
      },
      restart: () => visitor.restart(),
      pause: () => visitor.pause?.(),
    });
  }

  forEachTrackedFlow(family: Family, visitor: TrackedFlowVisitor): Promise<void> {
    return this.forEachFilteredFlow({ family }, visitor);
  }

  forEachFilteredFlow(filter: FlowFilter, visitor: TrackedFlowVisitor): Promise<void> {
    const flow = new TrackedFlow();
    return this.#walks.dump(listRequest(filter), {
      isDense: true,
      message: (message) => {
        if (message.type === CT_NEW && readTrackedFlow(message, flow) && flow.family === filter.family) {
          visitor.flow(flow);
        }
      },
      restart: () => visitor.restart(),
      pause: () => visitor.pause?.(),
    });
  }

  async readAgain(flows: readonly FlowAddress[], visit: (flow: TrackedFlow) => void): Promise<void> {
    const writer = new MessageWriter(flows.length * bytesPerRequest);
    for (const [i, flow] of flows.entries()) {
      writer.beginMessage(CT_GET, NLM_F_REQUEST, i);
      writeGet(writer, flow);
      writer.endMessage();
    }
    const found = new TrackedFlow();
    await this.#entries.exchange(writer.bytes(), (message) => {
      if (message.type !== CT_NEW || !readTrackedFlow(message, found)) return;
      if (found.id === flows[message.sequence]?.id) visit(found);
    });
  }

  async deleteFlows(flows: readonly FlowIdentity[]): Promise<DeleteResult> {
    const refusals = await this.#entries.requestEach(flows, deleteRequest);
    const failures = refusals
      .filter(({ error }) => error.code !== 'ENOENT')
      .map(({ item, error }) => ({ flow: item, error }));
    return { deleted: flows.length - failures.length, failures };
  }

  close(): void {
    this.#walks.close();
    this.#entries.close();
  }
}

function listRequest(filter: FlowFilter): NetlinkRequest {
  return {
    type: CT_GET,
    name: 'list conntrack entries',
    write: (writer: MessageWriter) => writeFilter(writer, filter),
  };
}

function deleteRequest(flow: FlowIdentity): NetlinkRequest {
  return {
    type: CT_DELETE,
    name: 'delete conntrack entry',
    write: (writer: MessageWriter) => writeDelete(writer, flow),
  };
}
