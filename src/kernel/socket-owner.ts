import { loadLibc } from '../native/koffi-libc.ts';
import { loadSockets } from '../native/koffi-sockets.ts';
import { SOL_SOCKET } from '../native/libc.ts';
import { SOCK_STREAM } from '../native/sockets.ts';

const AF_UNIX = 1;
const SO_PEERCRED = 17;

/** The process that listens at a socket, as this process sees it. */
export interface SocketOwner {
  /** 0 when it is in a pid namespace that this process does not see. */
  readonly pid: number;
  readonly uid: number;
}

/** Asks the kernel which process listens at an abstract Unix socket; undefined when none does. */
export async function socketOwner(name: string): Promise<SocketOwner | undefined> {
  const [sockets, libc] = [await loadSockets(), await loadLibc()];
  const address = Buffer.concat([new Uint8Array(Uint16Array.of(AF_UNIX).buffer), Buffer.from(`\0${name}`)]);
  const fd = sockets.socket(AF_UNIX, SOCK_STREAM);
  if (fd < 0) return undefined;
  try {
    if (sockets.connect(fd, address) < 0) return undefined;
    const credentials = new Int32Array(3);
    libc.getsockopt(fd, SOL_SOCKET, SO_PEERCRED, new Uint8Array(credentials.buffer));
    const [pid = 0, uid = 0] = credentials;
    return { pid, uid };
  } finally {
    sockets.close(fd);
  }
}
