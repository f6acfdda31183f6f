import { StreamError } from '../stream-error.ts';
import { maxVarintBytes, wire } from './wire-reader.ts';

/** Bytes of a value: within one chunk, or collected from several. */
export interface Slice {
  readonly bytes: Buffer;
  readonly start: number;
  readonly end: number;
}

/** The same bytes, not a copy. */
export function asBuffer(chunk: Uint8Array): Buffer {
  return Buffer.isBuffer(chunk) ? chunk : Buffer.from(chunk.buffer, chunk.byteOffset, chunk.length);
}

/** What precedes the value of a field. */
export interface Header {
  readonly field: number;
  readonly type: number;
  /** Bytes of the value that follow; 0 for a number, which is read already. */
  readonly length: number;
}

/** A parser that reads a `ChunkInput`. It yields undefined to get the next chunk. */
export type Parser<Part> = Generator<Part | undefined, void, void>;
type Read<T> = Generator<undefined, T, void>;

/** Bytes that arrive in chunks, for a parser that goes on where it stopped when the next chunk is there. */
export class ChunkInput {
  #bytes: Buffer = Buffer.alloc(0);
  #at = 0;
  #before = 0;
  /** The last position where the answer may end. The parser sets it. */
  boundary = -1;

  push(chunk: Uint8Array): void {
    this.#before = this.position;
    this.#bytes = asBuffer(chunk);
    this.#at = 0;
  }

  /** Bytes read so far. */
  get position(): number {
    return this.#before + this.#at;
  }

  *value(length: number): Read<Slice> {
    const start = this.#at;
    if (length <= this.#bytes.length - start) {
      this.#at = start + length;
      return { bytes: this.#bytes, start, end: this.#at };
    }
    const pieces: Buffer[] = [];
    for (let missing = length; missing > 0; ) {
      if (this.#at === this.#bytes.length) yield undefined;
      const piece = this.#take(missing);
      pieces.push(piece);
      missing -= piece.length;
    }
    const bytes = Buffer.concat(pieces);
    return { bytes, start: 0, end: bytes.length };
  }

  *skip(length: number): Read<void> {
    for (let missing = length; missing > 0; ) {
      if (this.#at === this.#bytes.length) yield undefined;
      missing -= this.#take(missing).length;
    }
  }

  /** Reads the number and type of a field, and the length of its value. */
  *header(): Read<Header> {
    const tag = yield* this.#varint();
    const type = tag % 8;
    const field = Math.floor(tag / 8);
    if (type === wire.varint) yield* this.#varint();
    else if (type === wire.fixed64) return { field, type, length: 8 };
    else if (type === wire.fixed32) return { field, type, length: 4 };
    else if (type === wire.bytes) return { field, type, length: yield* this.#varint() };
    else throw new StreamError(`a protobuf field of the unknown wire type ${type}`);
    return { field, type, length: 0 };
  }

  #take(length: number): Buffer {
    const piece = this.#bytes.subarray(this.#at, this.#at + length);
    this.#at += piece.length;
    return piece;
  }

  *#varint(): Read<number> {
    let value = 0;
    for (let i = 0; i < maxVarintBytes; i++) {
      while (this.#at === this.#bytes.length) yield undefined;
      const byte = this.#bytes[this.#at++] ?? 0;
      value += (byte & 0x7f) * 2 ** (7 * i);
      if (byte < 0x80) return value;
    }
    throw new StreamError(`a protobuf number of more than ${maxVarintBytes} bytes`);
  }
}
