import { hostLittleEndian } from '../../native/byte-order.ts';
import { align, attributeHeaderLength, headerLength, NLA_TYPE_MASK } from './constants.ts';

/** Bytes that are not a netlink message: cut off, or with an impossible length. */
export class NetlinkFormatError extends Error {
  readonly code = 'ERR_NETLINK_FORMAT';

  constructor(message: string) {
    super(message);
    this.name = 'NetlinkFormatError';
  }
}

const decoder = new TextDecoder('utf-8', { ignoreBOM: true });

/** One received message. It refers to the receive buffer, which is reused: a caller that keeps bytes copies them. */
export class NetlinkMessage {
  readonly type: number;
  readonly flags: number;
  readonly sequence: number;
  readonly port: number;
  readonly #view: DataView;
  readonly #start: number;
  readonly #end: number;

  constructor(view: DataView, start: number, end: number) {
    this.type = view.getUint16(start + 4, hostLittleEndian);
    this.flags = view.getUint16(start + 6, hostLittleEndian);
    this.sequence = view.getUint32(start + 8, hostLittleEndian);
    this.port = view.getUint32(start + 12, hostLittleEndian);
    this.#view = view;
    this.#start = start;
    this.#end = end;
  }

  /** Length including the header. */
  get length(): number {
    return this.#end - this.#start;
  }

  /** The bytes after the message header, in place. */
  payload(): Uint8Array {
    const from = this.#view.byteOffset + this.#start + headerLength;
    return new Uint8Array(this.#view.buffer, from, this.length - headerLength);
  }

  /** The first byte after the message header, in many protocols the address family; undefined when there is none. */
  get firstByte(): number | undefined {
    return this.length > headerLength ? this.#view.getUint8(this.#start + headerLength) : undefined;
  }

  /** The attributes after a family header of the given length. */
  attributes(familyHeaderLength: number): AttributeReader {
    const start = this.#start + headerLength + align(familyHeaderLength);
    if (start > this.#end) {
      throw new NetlinkFormatError(
        `message type ${this.type} has ${this.length} bytes, too few for its header`,
      );
    }
    return new AttributeReader(this.#view, start, this.#end);
  }
}

/** Calls back for every message of a datagram, in order. */
export function forEachMessage(datagram: Uint8Array, onMessage: (message: NetlinkMessage) => void): void {
  const view = new DataView(datagram.buffer, datagram.byteOffset, datagram.byteLength);
  let start = 0;
  while (start < datagram.length) {
    if (start + headerLength > datagram.length) {
      throw new NetlinkFormatError(`${datagram.length - start} bytes left, too few for a message header`);
    }
    const length = view.getUint32(start, hostLittleEndian);
    const end = start + length;
    if (length < headerLength || end > datagram.length) {
      throw new NetlinkFormatError(`message length ${length} with ${datagram.length - start} bytes left`);
    }
    onMessage(new NetlinkMessage(view, start, end));
    start += align(length);
  }
}

/** The messages of a datagram. */
export function readMessages(datagram: Uint8Array): NetlinkMessage[] {
  const messages: NetlinkMessage[] = [];
  forEachMessage(datagram, (message) => messages.push(message));
  return messages;
}

/**
 * Walks attributes: `while (reader.next()) switch (reader.type)`. The accessors read the value of the current attribute.
 * They throw NetlinkFormatError when it is too short, and read the start of a longer value, as the kernel does.
 */
export class AttributeReader {
  /** Type of the current attribute, without the flag bits. */
  type = 0;
  readonly #view: DataView;
  readonly #end: number;
  #next: number;
  #value = 0;
  #valueEnd = 0;

  constructor(view: DataView, start: number, end: number) {
    this.#view = view;
    this.#next = start;
    this.#end = end;
  }

  /** A reader over attributes outside of a message. */
  static over(bytes: Uint8Array): AttributeReader {
    return new AttributeReader(
      new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength),
      0,
      bytes.length,
    );
  }

  /** A reader that is positioned on the current attribute of another one. */
  static single(other: AttributeReader): AttributeReader {
    const reader = new AttributeReader(other.#view, other.#value - attributeHeaderLength, other.#valueEnd);
    reader.next();
    return reader;
  }

  /** Moves to the next attribute; returns false after the last one. */
  next(): boolean {
    const start = this.#next;
    // Up to three bytes of padding may follow the last attribute.
    if (start + attributeHeaderLength > this.#end) return false;
    const length = this.#view.getUint16(start, hostLittleEndian);
    if (length < attributeHeaderLength || start + length > this.#end) {
      throw new NetlinkFormatError(`attribute length ${length} with ${this.#end - start} bytes left`);
    }
    this.type = this.#view.getUint16(start + 2, hostLittleEndian) & NLA_TYPE_MASK;
    this.#value = start + attributeHeaderLength;
    this.#valueEnd = start + length;
    this.#next = start + align(length);
    return true;
  }

  get valueLength(): number {
    return this.#valueEnd - this.#value;
  }

  /** Offset of the current attribute in the bytes that this reader covers. */
  get offset(): number {
    return this.#value - attributeHeaderLength;
  }

  u8(): number {
    return this.#view.getUint8(this.#at(1));
  }

  u16(): number {
    return this.#view.getUint16(this.#at(2), hostLittleEndian);
  }

  u16Be(): number {
    return this.#view.getUint16(this.#at(2));
  }

  u32(): number {
    return this.#view.getUint32(this.#at(4), hostLittleEndian);
  }

  u32Be(): number {
    return this.#view.getUint32(this.#at(4));
  }

  i32Be(): number {
    return this.#view.getInt32(this.#at(4));
  }

  u64(): bigint {
    return this.#view.getBigUint64(this.#at(8), hostLittleEndian);
  }

  u64Be(): bigint {
    return this.#view.getBigUint64(this.#at(8));
  }

  /** As `u64Be`, as a number: exact up to 2^53, and cheaper than a bigint. */
  count(): number {
    const at = this.#at(8);
    return this.#view.getUint32(at) * 0x1_0000_0000 + this.#view.getUint32(at + 4);
  }

  /** The value in place: valid until the receive buffer is reused. */
  view(): Uint8Array {
    return new Uint8Array(this.#view.buffer, this.#view.byteOffset + this.#value, this.valueLength);
  }

  /** A copy of the value. */
  bytes(): Uint8Array {
    return this.view().slice();
  }

  /** Text up to the first NUL, or all of it. */
  string(): string {
    const bytes = this.view();
    const end = bytes.indexOf(0);
    return decoder.decode(end < 0 ? bytes : bytes.subarray(0, end));
  }

  /** The attributes inside the current one. */
  nested(): AttributeReader {
    return new AttributeReader(this.#view, this.#value, this.#valueEnd);
  }

  #at(length: number): number {
    if (this.valueLength < length) {
      throw new NetlinkFormatError(
        `attribute ${this.type} has ${this.valueLength} bytes, expected ${length}`,
      );
    }
    return this.#value;
  }
}
