import { hostLittleEndian } from '../../native/byte-order.ts';
import type { DatagramBatch } from '../../native/datagram-batch.ts';
import {
  AF_NETLINK,
  type Libc,
  SO_RCVBUF,
  SO_RCVBUFFORCE,
  SO_SNDBUF,
  SO_SNDBUFFORCE,
  SOCK_RAW,
  SOL_NETLINK,
  SOL_SOCKET,
  type Watch,
} from '../../native/libc.ts';
import { isSystemError, SystemError } from '../../native/system-error.ts';
import {
  NETLINK_ADD_MEMBERSHIP,
  NETLINK_CAP_ACK,
  NETLINK_DROP_MEMBERSHIP,
  NETLINK_EXT_ACK,
} from './constants.ts';
import { NetlinkFormatError } from './reader.ts';

/** A received datagram. Its bytes are in a buffer that the next receive overwrites. */
export interface Datagram {
  readonly bytes: Uint8Array;
  /** Netlink port of the sender: 0 is the kernel. */
  readonly sender: number;
}

/**
 * Sends datagrams to the kernel and receives them: the layer that a test replaces. Receiving throws a SystemError;
 * ENOBUFS means that the kernel dropped messages.
 */
export interface NetlinkTransport {
  /** Our own address, assigned by the kernel. */
  readonly portId: number;
  /** Resolves when the kernel has processed the request. */
  send(bytes: Uint8Array): Promise<void>;
  /** A datagram that is already queued, or undefined. */
  receive(): Datagram | undefined;
  /** As `receive`, on a worker thread. */
  receiveInWorker(): Promise<Datagram | undefined>;
  /** Calls back while a datagram or an error is queued. */
  watch(onReadable: () => void): Watch;
  /** Joins a multicast group, by number. */
  join(group: number): void;
  leave(group: number): void;
  /** See Libc.attachFilter. */
  attachFilter(program: Uint8Array): void;
  close(): void;
}

export interface TransportOptions {
  /** Bytes of messages that the kernel queues before it drops some. */
  readonly receiveBuffer?: number;
  /**
   * Receives up to `count` datagrams of up to `capacity` bytes in one call, which costs less. Only for those who call
   * `receive` until it returns undefined: what is received already does not wake a `watch`.
   */
  readonly batch?: { readonly count: number; readonly capacity: number };
}

const EBADF = 9;
const addressLength = 12;
/** Dumps come in parts of at most 32 KiB; twice that leaves room for any single message. */
const datagramBuffer = 65536;
const defaultReceiveBuffer = 4 << 20;

/** Opens a netlink socket of a protocol. Buffers beyond the system's limits need CAP_NET_ADMIN. */
export function openTransport(
  libc: Libc,
  protocol: number,
  options: TransportOptions = {},
): NetlinkTransport {
  return new SocketTransport(libc, protocol, options);
}

class SocketTransport implements NetlinkTransport {
  readonly portId: number;
  readonly #libc: Libc;
  readonly #fd: number;
  readonly #buffer = new Uint8Array(new ArrayBuffer(datagramBuffer));
  readonly #sender = new Uint8Array(new ArrayBuffer(addressLength));
  readonly #senderView = new DataView(this.#sender.buffer);
  readonly #batch: DatagramBatch | undefined;
  #batchSize = 0;
  #nextOfBatch = 0;
  #sendBuffer = 0;
  #pending = 0;
  #closed = false;

  constructor(libc: Libc, protocol: number, options: TransportOptions) {
    this.#libc = libc;
    const { batch } = options;
    this.#batch = batch && libc.datagramBatch(batch.count, batch.capacity);
    this.#fd = libc.socket(AF_NETLINK, SOCK_RAW, protocol);
    try {
      this.portId = this.#configure(options);
    } catch (error) {
      libc.close(this.#fd);
      throw error;
    }
  }

  async send(bytes: Uint8Array): Promise<void> {
    this.#assertOpen();
    this.#allowSend(bytes.length);
    await this.#inWorker(() => this.#libc.send(this.#fd, bytes));
  }

  receive(): Datagram | undefined {
    this.#assertOpen();
    if (this.#batch) return this.#nextDatagram(this.#batch);
    return this.#datagram(this.#libc.receive(this.#fd, this.#buffer, this.#sender));
  }

  async receiveInWorker(): Promise<Datagram | undefined> {
    return this.#datagram(
      await this.#inWorker(() => this.#libc.receiveInWorker(this.#fd, this.#buffer, this.#sender)),
    );
  }

  watch(onReadable: () => void): Watch {
    this.#assertOpen();
    return this.#libc.watch(this.#fd, onReadable);
  }

  join(group: number): void {
    this.#libc.setsockopt(this.#fd, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, int32(group));
  }

  leave(group: number): void {
    this.#libc.setsockopt(this.#fd, SOL_NETLINK, NETLINK_DROP_MEMBERSHIP, int32(group));
  }

  attachFilter(program: Uint8Array): void {
    this.#libc.attachFilter(this.#fd, program);
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    // A worker thread may still use this descriptor, and the kernel would give its number to the next open file.
    if (this.#pending === 0) this.#libc.close(this.#fd);
  }

  #configure(options: TransportOptions): number {
    this.#setBuffer(SO_RCVBUFFORCE, SO_RCVBUF, options.receiveBuffer ?? defaultReceiveBuffer);
    this.#libc.setsockopt(this.#fd, SOL_NETLINK, NETLINK_EXT_ACK, int32(1));
    this.#libc.setsockopt(this.#fd, SOL_NETLINK, NETLINK_CAP_ACK, int32(1));
    const address = new Uint8Array(new ArrayBuffer(addressLength));
    new DataView(address.buffer).setUint16(0, AF_NETLINK, hostLittleEndian);
    this.#libc.bind(this.#fd, address);
    this.#libc.getsockname(this.#fd, address);
    return new DataView(address.buffer).getUint32(4, hostLittleEndian);
  }

  /** The kernel refuses a datagram that is larger than the send buffer, even when the buffer is empty. */
  #allowSend(length: number): void {
    if (length <= this.#sendBuffer) return;
    const size = Math.max(length + 4096, 1 << 20);
    this.#setBuffer(SO_SNDBUFFORCE, SO_SNDBUF, size);
    this.#sendBuffer = size;
  }

  /** Without CAP_NET_ADMIN the system's limit applies: reading still works, and a send that is too large fails. */
  #setBuffer(forced: number, limited: number, size: number): void {
    try {
      this.#libc.setsockopt(this.#fd, SOL_SOCKET, forced, int32(size));
    } catch (error) {
      if (!isSystemError(error, 'EPERM')) throw error;
      this.#libc.setsockopt(this.#fd, SOL_SOCKET, limited, int32(size));
    }
  }

  #nextDatagram(batch: DatagramBatch): Datagram | undefined {
    if (this.#nextOfBatch >= this.#batchSize) {
      this.#nextOfBatch = this.#batchSize = 0;
      this.#batchSize = this.#libc.receiveBatch(this.#fd, batch);
      if (this.#batchSize === 0) return undefined;
    }
    const index = this.#nextOfBatch++;
    if (!batch.isWhole(index)) throw cutOff(batch.length(index));
    return { bytes: batch.bytes(index), sender: batch.sender(index).getUint32(4, hostLittleEndian) };
  }

  #datagram(length: number | undefined): Datagram | undefined {
    if (length === undefined) return undefined;
    if (length > this.#buffer.length) throw cutOff(length);
    const sender = this.#senderView.getUint32(4, hostLittleEndian);
    return { bytes: this.#buffer.subarray(0, length), sender };
  }

  #assertOpen(): void {
    if (this.#closed) throw new SystemError('netlink socket', EBADF);
  }

  async #inWorker<T>(call: () => Promise<T>): Promise<T> {
    this.#assertOpen();
    this.#pending++;
    try {
      return await call();
    } finally {
      this.#pending--;
      if (this.#closed && this.#pending === 0) this.#libc.close(this.#fd);
    }
  }
}

function int32(value: number): Uint8Array {
  return new Uint8Array(Int32Array.of(value).buffer);
}

function cutOff(length: number): NetlinkFormatError {
  return new NetlinkFormatError(`datagram of ${length} bytes was cut off`);
}
