import type { Libc } from '../../native/libc.ts';
import { NETLINK_NETFILTER } from '../netlink/constants.ts';
import { isNetlinkError } from '../netlink/error.ts';
import { NetlinkFormatError, type NetlinkMessage } from '../netlink/reader.ts';
import { NetlinkSocket, type SocketOptions } from '../netlink/socket.ts';
import { subscribe } from '../netlink/subscription.ts';
import { type NetlinkTransport, openTransport } from '../netlink/transport.ts';
import {
  LOG_CONFIG,
  LOG_PACKET,
  type LoggedPacket,
  readLoggedPacket,
  writeBind,
  writeSettings,
} from './codec.ts';

export interface PacketLogListener {
  packet(packet: LoggedPacket): void;
  /** The kernel dropped packets of the log, because they came faster than they were read. */
  overrun(): void;
  failed(error: Error): void;
}

/** Packets that rules log. Closing it gives the group back. */
export interface PacketLog {
  /** The number for `log group`. */
  readonly group: number;
  close(): void;
}

const firstGroup = 20_000;
const groups = 40_000;
const attempts = 8;

/** Takes a group of its own and receives its packets. Rejects with NetlinkError when the kernel has no such log. */
export function openPacketLog(
  libc: Libc,
  options: SocketOptions & { readonly random: () => number },
  listener: PacketLogListener,
): Promise<PacketLog> {
  return openPacketLogOn(openTransport(libc, NETLINK_NETFILTER), options, listener);
}

/** As `openPacketLog`, over a given transport, which it closes with the log. */
export async function openPacketLogOn(
  transport: NetlinkTransport,
  options: SocketOptions & { readonly random: () => number },
  listener: PacketLogListener,
): Promise<PacketLog> {
  try {
    const group = await bindGroup(new NetlinkSocket(transport, options), options.random);
    const { close } = subscribe(transport, [], {
      message: (message) => deliver(message, listener),
      overrun: () => listener.overrun(),
      failed: (error) => listener.failed(error),
    });
    return { group, close };
  } catch (error) {
    transport.close();
    throw error;
  }
}

async function bindGroup(socket: NetlinkSocket, random: () => number): Promise<number> {
  for (let attempt = 1; ; attempt++) {
    const group = firstGroup + Math.floor(random() * groups);
    try {
      await configure(socket, 'bind to packet log', (writer) => writeBind(writer, group));
      await configure(socket, 'configure packet log', (writer) => writeSettings(writer, group));
      return group;
    } catch (error) {
      // Another program has this group.
      if (!isNetlinkError(error, 'EBUSY') && !isNetlinkError(error, 'EPERM')) throw error;
      if (attempt === attempts) throw error;
    }
  }
}

function configure(
  socket: NetlinkSocket,
  name: string,
  write: Parameters<NetlinkSocket['request']>[0]['write'],
): Promise<void> {
  return socket.request({ type: LOG_CONFIG, name, write });
}

/** A message that cannot be read is left out. */
function deliver(message: NetlinkMessage, listener: PacketLogListener): void {
  if (message.type !== LOG_PACKET) return;
  let packet: LoggedPacket | undefined;
  try {
    packet = readLoggedPacket(message);
  } catch (error) {
    if (!(error instanceof NetlinkFormatError)) throw error;
  }
  if (packet) listener.packet(packet);
}
