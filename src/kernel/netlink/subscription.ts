import { asError } from '../../lib/thrown.ts';
import { isSystemError } from '../../native/system-error.ts';
import { forEachMessage, type NetlinkMessage } from './reader.ts';
import type { NetlinkTransport } from './transport.ts';

/** Receives the notifications of multicast groups. */
export interface NotificationHandler {
  /** The message looks into a buffer that is used again. */
  message(message: NetlinkMessage): void;
  /** The kernel dropped notifications, because they came faster than they were taken. */
  overrun(): void;
  /** The socket failed, or bytes came that are no message; nothing follows. */
  failed(error: Error): void;
}

export interface NetlinkSubscription {
  /** Leaves the groups for a while: as long as nobody listens, the kernel saves itself the notifications. */
  pause(): void;
  resume(): void;
  close(): void;
}

/** Datagrams handled before other work of the event loop gets its turn. */
const datagramsPerTurn = 64;

/**
 * Joins groups on a transport of its own and delivers what they say until closed. What was sent before this
 * returns is missed; everything later is delivered or reported as an overrun.
 */
export function subscribe(
  transport: NetlinkTransport,
  groups: readonly number[],
  handler: NotificationHandler,
): NetlinkSubscription {
  let open = true;
  const join = () => {
    for (const group of groups) transport.join(group);
  };
  const close = () => {
    if (!open) return;
    open = false;
    watch.close();
    transport.close();
  };
  try {
    join();
  } catch (error) {
    transport.close();
    throw error;
  }
  const watch = transport.watch(() => {
    try {
      for (let i = 0; open && i < datagramsPerTurn; i++) if (!receiveOne(transport, handler)) return;
    } catch (error) {
      close();
      handler.failed(asError(error));
    }
  });
  return {
    pause: () => {
      if (open) for (const group of groups) transport.leave(group);
    },
    resume: () => {
      if (open) join();
    },
    close,
  };
}

/** False when there is nothing to receive. */
function receiveOne(transport: NetlinkTransport, handler: NotificationHandler): boolean {
  try {
    const datagram = transport.receive();
    if (!datagram) return false;
    if (datagram.sender === 0) forEachMessage(datagram.bytes, (message) => handler.message(message));
  } catch (error) {
    if (!isSystemError(error, 'ENOBUFS')) throw error;
    handler.overrun();
  }
  return true;
}
