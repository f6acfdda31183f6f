/** Protocol buffer wire types. */
const varintType = 0;
const fixed64Type = 1;
const bytesType = 2;

const encoder = new TextEncoder();

/**
 * Writes protocol buffer fields, as far as pprof profiles and Prometheus metrics need. The caller leaves out default
 * values.
 */
export class ProtobufWriter {
  #bytes = new Uint8Array(256);
  #length = 0;

  /** Writes a non-negative integer, up to 2^64 - 1 as bigint. */
  uint(field: number, value: number | bigint): this {
    return this.#tag(field, varintType).#varint(value);
  }

  double(field: number, value: number): this {
    this.#tag(field, fixed64Type).#reserve(8);
    new DataView(this.#bytes.buffer).setFloat64(this.#length, value, true);
    this.#length += 8;
    return this;
  }

  string(field: number, value: string): this {
    return this.bytes(field, encoder.encode(value));
  }

  bytes(field: number, value: Uint8Array): this {
    return this.#tag(field, bytesType).#varint(value.length).#append(value);
  }

  message(field: number, write: (message: ProtobufWriter) => void): this {
    const message = new ProtobufWriter();
    write(message);
    return this.bytes(field, message.finish());
  }

  packed(field: number, values: readonly (number | bigint)[]): this {
    const inner = new ProtobufWriter();
    for (const value of values) inner.#varint(value);
    return this.bytes(field, inner.finish());
  }

  /** Writes a message with its length before it, as in a stream of messages. */
  delimited(write: (message: ProtobufWriter) => void): this {
    const message = new ProtobufWriter();
    write(message);
    const bytes = message.finish();
    return this.#varint(bytes.length).#append(bytes);
  }

  /** Returns what was written so far: a view that later writes may overwrite. */
  finish(): Uint8Array<ArrayBuffer> {
    return this.#bytes.subarray(0, this.#length);
  }

  #tag(field: number, type: number): this {
    return this.#varint(field * 8 + type);
  }

  #varint(value: number | bigint): this {
    this.#reserve(10);
    if (typeof value === 'number' && value <= 0xffff_ffff) return this.#varint32(value);
    let rest = BigInt(value);
    while (rest > 0x7fn) {
      this.#bytes[this.#length++] = Number(rest & 0x7fn) | 0x80;
      rest >>= 7n;
    }
    this.#bytes[this.#length++] = Number(rest);
    return this;
  }

  #varint32(value: number): this {
    let rest = value >>> 0;
    while (rest > 0x7f) {
      this.#bytes[this.#length++] = (rest & 0x7f) | 0x80;
      rest >>>= 7;
    }
    this.#bytes[this.#length++] = rest;
    return this;
  }

  #append(bytes: Uint8Array): this {
    this.#reserve(bytes.length);
    this.#bytes.set(bytes, this.#length);
    this.#length += bytes.length;
    return this;
  }

  #reserve(extra: number): void {
    if (this.#length + extra <= this.#bytes.length) return;
    const grown = new Uint8Array(Math.max(this.#bytes.length * 2, this.#length + extra));
    grown.set(this.#bytes.subarray(0, this.#length));
    this.#bytes = grown;
  }
}
