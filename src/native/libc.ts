/**
 * The few calls of the C library that the program needs beyond what Node offers. Every failure is a SystemError.
 * Buffers are handed to the kernel as they are, without a copy.
 */
export interface Libc {
  /** Sockets are made close-on-exec. */
  socket(domain: number, type: number, protocol: number): number;
  bind(fd: number, address: Uint8Array): void;
  /** Fills `address` with the socket's own address. */
  getsockname(fd: number, address: Uint8Array): void;
  setsockopt(fd: number, level: number, option: number, value: Uint8Array): void;
  /** Fills `value`, whose first bytes may be the question. */
  getsockopt(fd: number, level: number, option: number, value: Uint8Array): void;
  /** Attaches a classic BPF program (8 bytes per instruction, host order) that decides which datagrams are queued. */
  attachFilter(fd: number, program: Uint8Array): void;

  /**
   * Sends one datagram on a worker thread, because the kernel works a netlink request off inside this call. `data`
   * must stay untouched until the promise settles.
   */
  send(fd: number, data: Uint8Array): Promise<void>;

  /**
   * Takes a datagram that is already there; undefined when there is none. Returns its whole length, which exceeds
   * `buffer` when the rest of it was cut off. `sender` receives the sender's address.
   */
  receive(fd: number, buffer: Uint8Array, sender: Uint8Array): number | undefined;

  /** As `receive`, on a worker thread: for dumps, whose next part the kernel produces inside the call. */
  receiveInWorker(fd: number, buffer: Uint8Array, sender: Uint8Array): Promise<number | undefined>;

  /** Calls back on the event loop while the socket has something to read or an error to report. */
  watch(fd: number, onReadable: () => void): Watch;
  close(fd: number): void;
}

/** A running watch. It must be closed before its descriptor is. */
export interface Watch {
  close(): void;
}

export const AF_INET = 2;
export const AF_INET6 = 10;
export const AF_NETLINK = 16;
export const SOCK_RAW = 3;
export const IPPROTO_RAW = 255;
export const SOL_IP = 0;
export const SOL_SOCKET = 1;
export const SOL_IPV6 = 41;
export const SO_SNDBUFFORCE = 32;
export const SO_RCVBUFFORCE = 33;
export const SO_SNDBUF = 7;
export const SO_RCVBUF = 8;
export const SOL_NETLINK = 270;
