import type { Clock } from '../../lib/clock.ts';
import type { Libc } from '../../native/libc.ts';
import { NETLINK_NETFILTER } from '../netlink/constants.ts';
import { NetlinkFormatError, type NetlinkMessage } from '../netlink/reader.ts';
import {
  type DrainableSubscription,
  type NotificationHandler,
  type Rest,
  subscribe,
} from '../netlink/subscription.ts';
import { type NetlinkTransport, openTransport } from '../netlink/transport.ts';
import type { SystemFiles } from '../system-files.ts';
import { CT_DELETE, CT_NEW, NFNLGRP_CONNTRACK_DESTROY, NFNLGRP_CONNTRACK_NEW } from './constants.ts';
import { readTrackedFlow, TrackedFlow } from './tracked-flow.ts';

/** Receives what happens to flows. The record is filled again for the next event. */
export interface FlowListener {
  /** The first packet of the flow has left the node, or reached a process here. */
  opened(flow: TrackedFlow): void;
  /** The kernel forgot the flow: for TCP some time after the connection was closed. */
  ended(flow: TrackedFlow): void;
  /** The kernel dropped this many events, because they came faster than they were read. */
  lost(count: number): void;
  /** The subscription failed and is closed. */
  failed(error: Error): void;
}

/** Several seconds of events at 5,000 connections per second. */
const receiveBuffer = 32 << 20;
/** A wake-up of the process for each event would cost more than the event. */
const restMs = 50;

/** Subscribes to new and ended flows of this network namespace. Throws SystemError without CAP_NET_ADMIN. */
export function followFlows(
  libc: Libc,
  { files, clock }: { readonly files: SystemFiles; readonly clock: Clock },
  listener: FlowListener,
): DrainableSubscription {
  const transport = openTransport(libc, NETLINK_NETFILTER, { receiveBuffer });
  return followFlowsOn(transport, files, listener, { ms: restMs, clock });
}

/** As `followFlows`, over a given transport, which it closes with the subscription. */
export function followFlowsOn(
  transport: NetlinkTransport,
  files: SystemFiles,
  listener: FlowListener,
  rest?: Rest,
): DrainableSubscription {
  const flow = new TrackedFlow();
  let drops = 0;
  const groups = [NFNLGRP_CONNTRACK_NEW, NFNLGRP_CONNTRACK_DESTROY];
  const handler: NotificationHandler = {
    message: (message) => {
      if (!isReadable(message, flow)) return;
      if (message.type === CT_NEW) listener.opened(flow);
      else if (message.type === CT_DELETE) listener.ended(flow);
    },
    overrun: () => {
      const now = Math.max(dropsOf(transport.portId, files), drops + 1);
      listener.lost(now - drops);
      drops = now;
    },
    failed: (error) => listener.failed(error),
  };
  return subscribe(transport, groups, handler, rest);
}

/** An event that cannot be read is left out: one odd entry must not end the subscription. */
function isReadable(message: NetlinkMessage, flow: TrackedFlow): boolean {
  try {
    return readTrackedFlow(message, flow);
  } catch (error) {
    if (error instanceof NetlinkFormatError) return false;
    throw error;
  }
}

/** Datagrams that the kernel dropped for the socket with this port, as /proc tells; 0 when it does not. */
export function dropsOf(portId: number, files: SystemFiles): number {
  let text: string;
  try {
    text = files.read('/proc/net/netlink');
  } catch {
    return 0;
  }
  const [head = '', ...lines] = text.split('\n').map((line) => line.trim());
  const column = head.split(/\s+/).indexOf('Drops');
  for (const line of lines) {
    const fields = line.split(/\s+/);
    if (fields[1] === String(NETLINK_NETFILTER) && fields[2] === String(portId))
      return Number(fields[column]);
  }
  return 0;
}
