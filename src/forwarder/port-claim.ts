import { SOCK_DGRAM, SOCK_STREAM, type Sockets } from '../native/sockets.ts';
import { openSocket } from './open-socket.ts';
import type { SocketAddress } from './socket-address.ts';

/** A port that no other program can have while it is held. */
export interface PortClaim {
  release(): void;
}

/**
 * Holds a port; throws SystemError when somebody has it. The socket is bound and no more: a connection that comes to
 * it all the same is refused by the kernel instead of waiting for nobody.
 */
export function claimPort(sockets: Sockets, protocol: 'TCP' | 'UDP', at: SocketAddress): PortClaim {
  const fd = openSocket(sockets, protocol === 'TCP' ? SOCK_STREAM : SOCK_DGRAM, at);
  return { release: () => void sockets.close(fd) };
}
