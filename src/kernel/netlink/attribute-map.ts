import { nfgenmsgLength } from './constants.ts';
import { AttributeReader, type NetlinkMessage } from './reader.ts';

/**
 * The attributes of one nesting level by type, for objects that are read rarely. Of an attribute that occurs twice the
 * last one counts, as in the kernel. Values are read in place.
 */
export class AttributeMap {
  readonly #readers = new Map<number, AttributeReader>();

  constructor(reader: AttributeReader) {
    while (reader.next()) {
      this.#readers.set(reader.type, AttributeReader.single(reader));
    }
  }

  /** The attributes of a message whose family header has this length; that of netfilter unless given. */
  static of(message: NetlinkMessage, familyHeaderLength = nfgenmsgLength): AttributeMap {
    return new AttributeMap(message.attributes(familyHeaderLength));
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

  /** The attributes inside the attribute of this type. */
  nestedMap(type: number): AttributeMap | undefined {
    const nested = this.nested(type);
    return nested && new AttributeMap(nested);
  }
}
