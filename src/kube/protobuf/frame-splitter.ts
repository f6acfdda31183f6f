import { maxObjectBytes } from '../encoding.ts';
import { StreamError } from '../stream-error.ts';
import { asBuffer, type Slice } from './chunk-input.ts';

const lengthBytes = 4;

/**
 * Splits a watch answer: messages, each after its length in four bytes. Most frames lie within a chunk; they are not
 * copied.
 */
export class FrameSplitter {
  readonly #limit: number;
  /** The beginning of a frame that is not complete, and its length as far as it is known. */
  #pieces: Buffer[] = [];
  #gathered = 0;
  #needed = lengthBytes;

  constructor(limit = maxObjectBytes) {
    this.#limit = limit;
  }

  *push(chunk: Uint8Array): Generator<Slice> {
    this.#gather(asBuffer(chunk));
    if (this.#gathered < this.#needed) return;
    const [only] = this.#pieces;
    const bytes = this.#pieces.length === 1 && only !== undefined ? only : Buffer.concat(this.#pieces);
    let at = 0;
    for (;;) {
      const available = bytes.length - at;
      this.#needed = lengthBytes + (available < lengthBytes ? 0 : this.#lengthAt(bytes, at));
      if (available < this.#needed) break;
      const end = at + this.#needed;
      yield { bytes, start: at + lengthBytes, end };
      at = end;
    }
    this.#pieces = [];
    this.#gathered = 0;
    this.#gather(bytes.subarray(at));
  }

  /** Fails when the stream stopped inside a frame. */
  end(): void {
    if (this.#gathered > 0) throw new StreamError('the stream ended inside a watch event');
  }

  #gather(piece: Buffer): void {
    if (piece.length === 0) return;
    this.#pieces.push(piece);
    this.#gathered += piece.length;
  }

  #lengthAt(bytes: Buffer, at: number): number {
    const length = bytes.readUInt32BE(at);
    if (length > this.#limit) throw new StreamError(`a watch event is larger than ${this.#limit} bytes`);
    return length;
  }
}
