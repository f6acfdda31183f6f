/** Writes protobuf from back to front, so that the length of a message is known when its header is written. */
export class BackwardWriter {
  #buffer = Buffer.allocUnsafe(1024);
  /** The first byte written so far. */
  #start = this.#buffer.length;

  get length(): number {
    return this.#buffer.length - this.#start;
  }

  /** A copy of what was written. */
  bytes(): Buffer {
    return Buffer.from(this.#buffer.subarray(this.#start));
  }

  /** A negative number takes ten bytes, as in two's complement of 64 bits. */
  varint(value: number): void {
    if (value < 0 || value > 0x7f) this.raw(longVarint(value));
    else {
      this.#reserve(1);
      this.#buffer[--this.#start] = value;
    }
  }

  raw(bytes: Uint8Array): void {
    this.#reserve(bytes.length);
    this.#start -= bytes.length;
    this.#buffer.set(bytes, this.#start);
  }

  text(text: string): void {
    const length = Buffer.byteLength(text);
    this.#reserve(length);
    this.#start -= length;
    this.#buffer.write(text, this.#start);
  }

  /** The header of the field whose content was written last. Its content began when `length` was `before`. */
  delimited(field: number, before: number): void {
    this.varint(this.length - before);
    this.tag(field, 2);
  }

  tag(field: number, wireType: 0 | 2): void {
    this.varint(field * 8 + wireType);
  }

  #reserve(more: number): void {
    if (this.#start >= more) return;
    const grown = Buffer.allocUnsafe(Math.max(this.#buffer.length * 2, this.length + more));
    const start = grown.length - this.length;
    this.#buffer.copy(grown, start, this.#start);
    this.#buffer = grown;
    this.#start = start;
  }
}

function longVarint(value: number): Uint8Array {
  const bytes: number[] = [];
  let rest = BigInt.asUintN(64, BigInt(value));
  for (; rest > 0x7fn; rest >>= 7n) bytes.push(Number(rest & 0x7fn) | 0x80);
  return Uint8Array.from([...bytes, Number(rest)]);
}
