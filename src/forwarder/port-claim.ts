import { SOCK_DGRAM, SOCK_STREAM, type Sockets } from '../native/sockets.ts';
import type { Admission } from './admission.ts';
import { openSocket } from './open-socket.ts';
import type { SocketAddress } from './socket-address.ts';

/** A port that no other program can have while it is held. */
export interface PortClaim {
  release(): void;
}

/**
 * Holds a port; throws SystemError when somebody has it, or too many are held. The socket is bound and no more: a
 * connection that comes to it all the same is refused by the kernel instead of waiting for nobody.
 */
export function claimPort(
  sockets: Sockets,
  admission: Admission,
  protocol: 'TCP' | 'UDP',
  at: SocketAddress,
): PortClaim {
  const type = protocol === 'TCP' ? SOCK_STREAM : SOCK_DGRAM;
  const fd = admission.listen(() => openSocket(sockets, type, at));
  return {
    release: () => {
      sockets.close(fd);
      admission.unlisten();
    },
  };
}
