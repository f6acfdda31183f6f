import type { Family } from '../../model/ip.ts';
import type { MessageWriter } from '../netlink/writer.ts';
import { addressFamilies, protocolNumbers } from '../numbers.ts';

/** sock_diag messages (linux/sock_diag.h, linux/inet_diag.h). */

export const SOCK_DESTROY = 21;

/** The addresses and ports of a socket, as its owner sees them. Addresses are in network order, 4 or 16 bytes. */
export interface SocketAddresses {
  readonly family: Family;
  readonly source: Uint8Array;
  readonly sourcePort: number;
  readonly destination: Uint8Array;
  readonly destinationPort: number;
}

/** Size of inet_diag_req_v2, and where its parts lie. */
const requestLength = 56;
const at = {
  states: 4,
  sourcePort: 8,
  destinationPort: 10,
  source: 12,
  destination: 28,
  cookie: 48,
} as const;
const everyState = 0xffffffff;
/** INET_DIAG_NOCOOKIE: whichever socket has these addresses. */
const anySocket = 0xffffffff;

/** Writes the body of a request about one TCP socket. */
export function writeTcpSocket(writer: MessageWriter, socket: SocketAddresses): void {
  const bytes = new Uint8Array(requestLength);
  const view = new DataView(bytes.buffer);
  view.setUint8(0, addressFamilies[socket.family]);
  view.setUint8(1, protocolNumbers.TCP);
  view.setUint32(at.states, everyState);
  view.setUint16(at.sourcePort, socket.sourcePort);
  view.setUint16(at.destinationPort, socket.destinationPort);
  bytes.set(socket.source, at.source);
  bytes.set(socket.destination, at.destination);
  view.setUint32(at.cookie, anySocket);
  view.setUint32(at.cookie + 4, anySocket);
  writer.raw(bytes);
}
