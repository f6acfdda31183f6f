import type { Clock } from '../../lib/clock.ts';
import type { Libc } from '../../native/libc.ts';
import { headerLength, NETLINK_NETFILTER, NLM_F_CREATE, nfgenmsgLength } from '../netlink/constants.ts';
import { requireAttribute } from '../netlink/filter.ts';
import { NetlinkFormatError, type NetlinkMessage } from '../netlink/reader.ts';
import { type DrainableSubscription, type NotificationHandler, subscribe } from '../netlink/subscription.ts';
import { type NetlinkTransport, openTransport } from '../netlink/transport.ts';
import type { SystemFiles } from '../system-files.ts';
import {
  CT_DELETE,
  CT_NEW,
  CTA,
  entryBatch,
  NFNLGRP_CONNTRACK_DESTROY,
  NFNLGRP_CONNTRACK_NEW,
  NFNLGRP_CONNTRACK_UPDATE,
  PROTOINFO_TCP,
  PROTOINFO_TCP_STATE,
  TCP,
} from './constants.ts';
import { readTrackedFlow, TrackedFlow } from './tracked-flow.ts';

/** Receives what happens to flows. The record is filled again for the next event. */
export interface FlowListener {
  /** The first packet of the flow has left the node, or reached a process here. */
  opened(flow: TrackedFlow): void;
  /**
   * Both sides have closed the TCP connection, or one has reset it; the kernel still remembers it. Called only after
   * `followCloses(true)`, without packets and bytes.
   */
  closed(flow: TrackedFlow): void;
  /** The kernel forgot the flow: for TCP some time after the connection was closed. */
  ended(flow: TrackedFlow): void;
  /** The kernel dropped this many events, because they came faster than they were read. */
  lost(count: number): void;
  /** The subscription failed and is closed. */
  failed(error: Error): void;
}

export interface FlowSubscription extends DrainableSubscription {
  /** Whether closed connections are reported. Events come sooner then, since somebody reads them. */
  followCloses(isOn: boolean): void;
}

/** Several seconds of events at 5,000 connections per second. */
const receiveBuffer = 32 << 20;
/** A wake-up of the process for each event would cost more than the event. */
const restMs = 50;
/** With more to do for each event, fewer of them at a time: other work of the event loop waits for them. */
const restOfReaderMs = 10;

/** Changes of entries are many, for each connection about five. Those of the last one pass. */
const closesOnly = requireAttribute({
  types: [CT_DELETE],
  flags: NLM_F_CREATE,
  headers: headerLength + nfgenmsgLength,
  path: [CTA.PROTOINFO, PROTOINFO_TCP, PROTOINFO_TCP_STATE],
  values: [TCP.TIME_WAIT, TCP.CLOSE],
});

/** Subscribes to new and ended flows of this network namespace. Throws SystemError without CAP_NET_ADMIN. */
export function followFlows(
  libc: Libc,
  { files, clock }: { readonly files: SystemFiles; readonly clock: Clock },
  listener: FlowListener,
): FlowSubscription {
  const transport = openTransport(libc, NETLINK_NETFILTER, { receiveBuffer, batch: entryBatch });
  return followFlowsOn(transport, files, listener, clock);
}

/** As `followFlows`, over a given transport, which it closes with the subscription. */
export function followFlowsOn(
  transport: NetlinkTransport,
  files: SystemFiles,
  listener: FlowListener,
  clock?: Clock,
): FlowSubscription {
  const rest = clock && { clock, ms: restMs };
  const flow = new TrackedFlow();
  let drops = 0;
  let isOpen = true;
  const groups = [NFNLGRP_CONNTRACK_NEW, NFNLGRP_CONNTRACK_DESTROY];
  const handler: NotificationHandler = {
    message: (message) => {
      if (!isReadable(message, flow)) return;
      if (message.type === CT_NEW && message.flags & NLM_F_CREATE) listener.opened(flow);
      else if (message.type === CT_NEW) listener.closed(flow);
      else if (message.type === CT_DELETE) listener.ended(flow);
    },
    overrun: () => {
      const now = Math.max(dropsOf(transport.portId, files), drops + 1);
      listener.lost(now - drops);
      drops = now;
    },
    failed: (error) => {
      isOpen = false;
      listener.failed(error);
    },
  };
  const subscription = subscribe(transport, groups, handler, rest);
  return {
    ...subscription,
    close: () => {
      isOpen = false;
      subscription.close();
    },
    followCloses: (isOn) => {
      if (!isOpen) return;
      if (rest) rest.ms = isOn ? restOfReaderMs : restMs;
      if (isOn) transport.attachFilter(closesOnly);
      if (isOn) transport.join(NFNLGRP_CONNTRACK_UPDATE);
      else transport.leave(NFNLGRP_CONNTRACK_UPDATE);
    },
  };
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
