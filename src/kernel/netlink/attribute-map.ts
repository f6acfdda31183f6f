import { AttributeReader } from './reader.ts';

/**
 * The attributes of one level by type, for objects that are read rarely enough to afford it. An attribute that
 * occurs twice counts the last time, as in the kernel. Values are looked at in place.
 */
export class AttributeMap {
  readonly #readers = new Map<number, AttributeReader>();

  constructor(reader: AttributeReader) {
    while (reader.next()) {
      const value = AttributeReader.single(reader);
      this.#readers.set(reader.type, value);
    }
  }

  has(type: number): boolean {
    return this.#readers.has(type);
  }

  u8(type: number): number | undefined {
    return this.#readers.get(type)?.u8();
  }

  u16(type: number): number | undefined {
    return this.#readers.get(type)?.u16();
  }

  u16Be(type: number): number | undefined {
    return this.#readers.get(type)?.u16Be();
  }

  u32Be(type: number): number | undefined {
    return this.#readers.get(type)?.u32Be();
  }

  u32(type: number): number | undefined {
    return this.#readers.get(type)?.u32();
  }

  i32Be(type: number): number | undefined {
    return this.#readers.get(type)?.i32Be();
  }

  u64(type: number): bigint | undefined {
    return this.#readers.get(type)?.u64();
  }

  u64Be(type: number): bigint | undefined {
    return this.#readers.get(type)?.u64Be();
  }

  string(type: number): string | undefined {
    return this.#readers.get(type)?.string();
  }

  /** A copy of the value. */
  bytes(type: number): Uint8Array | undefined {
    return this.#readers.get(type)?.bytes();
  }

  nested(type: number): AttributeReader | undefined {
    return this.#readers.get(type)?.nested();
  }
}
