import type { DatagramBatch } from './datagram-batch.ts';

/**
 * Calls of the C library that Node does not offer. Every failure is a SystemError. Buffers are passed to the kernel
 * without a copy.
 */
export interface Libc {
  /** The socket is close-on-exec. */
  socket(domain: number, type: number, protocol: number): number;
  bind(fd: number, address: Uint8Array): void;
  /** Fills `address` with the socket's own address. */
  getsockname(fd: number, address: Uint8Array): void;
  setsockopt(fd: number, level: number, option: number, value: Uint8Array): void;
  /** Fills `value`; some options read an argument from it first. */
  getsockopt(fd: number, level: number, option: number, value: Uint8Array): void;
  /** Attaches a classic BPF program (8 bytes per instruction, host order) that decides which datagrams are queued. */
  attachFilter(fd: number, program: Uint8Array): void;

  /**
   * Sends one datagram on a worker thread, because the kernel processes a netlink request inside this call. The caller
   * must not change `data` until the promise settles.
   */
  send(fd: number, data: Uint8Array): Promise<void>;

  /**
   * Receives a datagram that is already queued; returns undefined when there is none. Returns the full length of the
   * datagram, also when `buffer` was too small for it. Fills `sender` with the sender's address.
   */
  receive(fd: number, buffer: Uint8Array, sender: Uint8Array): number | undefined;

  /** Room for datagrams of up to `capacity` bytes. */
  datagramBatch(count: number, capacity: number): DatagramBatch;

  /** Receives datagrams that are already queued, as many as the batch has room for. Returns how many there were. */
  receiveBatch(fd: number, batch: DatagramBatch): number;

  /** As `receive`, on a worker thread: the kernel produces the next part of a dump inside the call. */
  receiveInWorker(fd: number, buffer: Uint8Array, sender: Uint8Array): Promise<number | undefined>;

  /** Calls back on the event loop while the socket has a datagram or an error. */
  watch(fd: number, onReadable: () => void): Watch;
  close(fd: number): void;
}

/** A running watch. Close it before its descriptor. */
export interface Watch {
  close(): void;
}

export const AF_INET = 2;
export const AF_INET6 = 10;
export const AF_NETLINK = 16;
export const SOCK_DGRAM = 2;
export const SOCK_RAW = 3;
export const SOL_IP = 0;
export const SOL_SOCKET = 1;
export const SOL_IPV6 = 41;
export const SO_SNDBUFFORCE = 32;
export const SO_RCVBUFFORCE = 33;
export const SO_SNDBUF = 7;
export const SO_RCVBUF = 8;
export const SOL_NETLINK = 270;
