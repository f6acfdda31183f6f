import { hostLittleEndian } from './byte-order.ts';

/** Of struct mmsghdr on 64-bit machines: its size, and the offsets of its fields. */
const headerBytes = 64;
const NAME = 0;
const NAME_LENGTH = 8;
const VECTOR = 16;
const VECTOR_COUNT = 24;
const RECEIVED_LENGTH = 56;
/** Of struct iovec. */
const vectorBytes = 16;
const BASE = 0;
const CAPACITY = 8;
/** The kernel writes a netlink address of 12 bytes. */
const nameBytes = 16;

/** Room for datagrams that one call receives. The memory has to stay where it is, since the headers have its address. */
export class DatagramBatch {
  readonly count: number;
  /** What the kernel reads and fills: an array of struct mmsghdr. */
  readonly headers: Uint8Array;
  readonly #view: DataView;
  readonly #bytes: Uint8Array;
  readonly #names: Uint8Array;
  /** Referenced so that it is not collected. */
  readonly #vectors: Uint8Array;
  readonly #capacity: number;

  /** `addressOf` returns the address of the first byte. Datagrams may have up to `capacity` bytes, a multiple of 8. */
  constructor(count: number, capacity: number, addressOf: (bytes: Uint8Array) => bigint) {
    // An explicit ArrayBuffer: V8 keeps small arrays in its heap, where garbage collection could move them.
    const room = (bytes: number) => new Uint8Array(new ArrayBuffer(count * bytes));
    this.count = count;
    this.#capacity = capacity;
    this.headers = room(headerBytes);
    this.#view = new DataView(this.headers.buffer);
    this.#bytes = room(capacity);
    this.#names = room(nameBytes);
    this.#vectors = room(vectorBytes);
    const vectors = new DataView(this.#vectors.buffer);
    const put = (view: DataView, at: number, value: bigint) => view.setBigUint64(at, value, hostLittleEndian);
    const [bytesAt, namesAt, vectorsAt] = [this.#bytes, this.#names, this.#vectors].map(addressOf);
    const place = (start: bigint | undefined, i: number, size: number) => (start ?? 0n) + BigInt(i * size);
    for (let i = 0; i < count; i++) {
      put(vectors, i * vectorBytes + BASE, place(bytesAt, i, capacity));
      put(vectors, i * vectorBytes + CAPACITY, BigInt(capacity));
      put(this.#view, i * headerBytes + NAME, place(namesAt, i, nameBytes));
      put(this.#view, i * headerBytes + NAME_LENGTH, BigInt(nameBytes));
      put(this.#view, i * headerBytes + VECTOR, place(vectorsAt, i, vectorBytes));
      put(this.#view, i * headerBytes + VECTOR_COUNT, 1n);
    }
  }

  /** The full length of a datagram, also when there was no room for all of it. */
  length(index: number): number {
    return this.#view.getUint32(index * headerBytes + RECEIVED_LENGTH, hostLittleEndian);
  }

  /** The bytes of a datagram, in place. */
  bytes(index: number): Uint8Array {
    const start = index * this.#capacity;
    return this.#bytes.subarray(start, start + Math.min(this.length(index), this.#capacity));
  }

  /** The address of the sender, in place. */
  sender(index: number): DataView {
    return new DataView(this.#names.buffer, index * nameBytes, nameBytes);
  }

  /** Whether there was room for all of a datagram. */
  isWhole(index: number): boolean {
    return this.length(index) <= this.#capacity;
  }
}
