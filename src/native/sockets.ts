/**
 * Sockets without Node's streams, for relaying traffic. All are non-blocking and close-on-exec. A failed call returns a
 * negative errno value and throws nothing, because every connection makes several calls.
 */
export interface Sockets {
  socket(domain: number, type: number): number;
  bind(fd: number, address: Uint8Array): number;
  listen(fd: number, backlog: number): number;
  /** Returns the descriptor of a new connection; fills `peer` with the client's address. */
  accept(fd: number, peer: Uint8Array): number;
  /** A second call returns 0 when the connection has been made meanwhile. */
  connect(fd: number, address: Uint8Array): number;
  getsockname(fd: number, address: Uint8Array): number;
  setOption(fd: number, level: number, option: number, value: number): number;
  /** Fills `value` with the option, as the kernel encodes it. */
  getOption(fd: number, level: number, option: number, value: Uint8Array): number;
  /** Makes `close` send a reset. */
  abortOnClose(fd: number): number;
  /** Returns and clears the pending error of a socket, as a positive errno value; 0 when there is none. */
  pendingError(fd: number): number;

  read(fd: number, buffer: Uint8Array): number;
  /** Sends the first `length` bytes. */
  send(fd: number, data: Uint8Array, length: number): number;
  /** Receives a datagram; fills `sender` with the sender's address. */
  receiveFrom(fd: number, buffer: Uint8Array, sender: Uint8Array): number;
  sendTo(fd: number, data: Uint8Array, length: number, to: Uint8Array): number;
  /** Ends the sending half. */
  shutdownWrite(fd: number): number;
  close(fd: number): number;

  /** Makes a pipe of at most `size` bytes: [read end, write end]; undefined on failure. */
  pipe(size: number): readonly [number, number] | undefined;
  /** Moves up to `length` bytes between a pipe and a socket without copying them. */
  splice(from: number, to: number, length: number): number;

  /** Makes a queue that reports ready descriptors. Throws SystemError. */
  openQueue(maxEvents: number): ReadyQueue;
  /** [soft, hard] limit of open descriptors; throws SystemError. */
  openFileLimit(): readonly [number, number];
  setOpenFileLimit(soft: number, hard: number): number;
}

/** An epoll instance. The caller chooses tokens, below 2^32. */
export interface ReadyQueue {
  add(fd: number, events: number, token: number): number;
  remove(fd: number): number;
  /** Waits up to `timeoutMs` for a ready descriptor; returns the number of ready ones, up to the size of the queue. */
  poll(timeoutMs: number): number;
  /** Events of the i-th ready descriptor. */
  events(i: number): number;
  token(i: number): number;
  /**
   * Calls back on Node's event loop whenever a descriptor is ready. Only for the main thread: a worker thread that ends
   * with an open watch crashes the process.
   */
  watch(onReady: () => void): void;
  close(): void;
}

export const AF_INET = 2;
export const AF_INET6 = 10;
export const SOCK_STREAM = 1;
export const SOCK_DGRAM = 2;

export const SOL_SOCKET = 1;
export const SO_REUSEADDR = 2;
export const SO_RCVBUF = 8;
export const SO_KEEPALIVE = 9;
export const SO_MARK = 36;
export const IPPROTO_IP = 0;
export const IP_TRANSPARENT = 19;
export const IP_BIND_ADDRESS_NO_PORT = 24;
/** Where the client's first packet was sent to, before destination NAT. The level is that of the family. */
export const SO_ORIGINAL_DST = 80;
export const IPPROTO_TCP = 6;
export const TCP_NODELAY = 1;
export const TCP_KEEPIDLE = 4;
export const TCP_KEEPINTVL = 5;
export const IPPROTO_IPV6 = 41;
export const IPV6_V6ONLY = 26;
export const IPV6_TRANSPARENT = 75;

export const EPOLLIN = 0x1;
export const EPOLLOUT = 0x4;
export const EPOLLERR = 0x8;
export const EPOLLHUP = 0x10;
export const EPOLLRDHUP = 0x2000;
export const EPOLLET = 0x80000000;

export const ENOENT = 2;
export const EAGAIN = 11;
export const EINTR = 4;
export const EINVAL = 22;
export const ENFILE = 23;
export const ENOSYS = 38;
export const EMFILE = 24;
export const ECONNABORTED = 103;
export const EMSGSIZE = 90;
export const ENOBUFS = 105;
export const ENOMEM = 12;
export const EINPROGRESS = 115;
