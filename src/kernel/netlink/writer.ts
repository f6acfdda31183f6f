import { hostLittleEndian } from '../../native/byte-order.ts';
import { align, headerLength, maxAttributeLength, NLA_F_NESTED } from './constants.ts';

const encoder = new TextEncoder();

/**
 * Appends netlink messages to one growing buffer. Attributes belong to the message begun last. The caller ends messages
 * and nested attributes, which fills in their lengths. Integers are in host byte order, with suffix `Be` in network
 * byte order.
 *
 * Everything starts at a multiple of 4 bytes, so integers in host order are written through typed arrays over the same
 * memory. That is fast enough to encode hundreds of thousands of elements on the event loop.
 */
export class MessageWriter {
  #bytes: Uint8Array;
  #halves: Uint16Array;
  #words: Uint32Array;
  #view: DataView;
  #length = 0;
  #message = 0;

  constructor(capacity = 4096) {
    const buffer = new ArrayBuffer(Math.max(64, align(capacity)));
    this.#bytes = new Uint8Array(buffer);
    this.#halves = new Uint16Array(buffer);
    this.#words = new Uint32Array(buffer);
    this.#view = new DataView(buffer);
  }

  /** Bytes written so far. */
  get length(): number {
    return this.#length;
  }

  /** The bytes written so far; valid until the next write. */
  bytes(): Uint8Array {
    return this.#bytes.subarray(0, this.#length);
  }

  /** Begins a message; returns its offset. Leaves the sender's port 0, which the kernel accepts. */
  beginMessage(type: number, flags: number, sequence: number): number {
    const start = this.#reserve(headerLength);
    this.#message = start;
    this.#halves[(start >> 1) + 2] = type;
    this.#halves[(start >> 1) + 3] = flags;
    this.#words[(start >> 2) + 2] = sequence;
    this.#words[(start >> 2) + 3] = 0;
    return start;
  }

  endMessage(): void {
    this.#words[this.#message >> 2] = this.#length - this.#message;
  }

  /** Appends bytes with padding: a family's fixed header, or attributes that are encoded already. */
  raw(bytes: Uint8Array): void {
    this.#put(this.#reserve(align(bytes.length)), bytes);
  }

  /** struct nfgenmsg, which every netfilter message begins with. */
  nfgenmsg(family: number, resource = 0): void {
    const at = this.#reserve(4);
    this.#bytes[at] = family;
    this.#bytes[at + 1] = 0;
    this.#view.setUint16(at + 2, resource);
  }

  /** Begins an attribute that contains attributes; returns the argument for `endNested`. */
  beginNested(type: number): number {
    const start = this.#reserve(4);
    this.#halves[(start >> 1) + 1] = type | NLA_F_NESTED;
    return start;
  }

  endNested(start: number): void {
    const length = this.#length - start;
    if (length > maxAttributeLength) throw tooLong(length);
    this.#halves[start >> 1] = length;
  }

  flag(type: number): void {
    this.#attribute(type, 0);
  }

  u8(type: number, value: number): void {
    const at = this.#attribute(type, 1);
    this.#words[at >> 2] = 0;
    this.#bytes[at] = value;
  }

  u16(type: number, value: number): void {
    const at = this.#attribute(type, 2);
    this.#words[at >> 2] = 0;
    this.#halves[at >> 1] = value;
  }

  u16Be(type: number, value: number): void {
    const at = this.#attribute(type, 2);
    this.#words[at >> 2] = 0;
    this.#view.setUint16(at, value);
  }

  u32(type: number, value: number): void {
    const at = this.#attribute(type, 4);
    this.#words[at >> 2] = value;
  }

  u32Be(type: number, value: number): void {
    const at = this.#attribute(type, 4);
    this.#view.setUint32(at, value);
  }

  u64(type: number, value: bigint): void {
    const at = this.#attribute(type, 8);
    this.#view.setBigUint64(at, value, hostLittleEndian);
  }

  u64Be(type: number, value: bigint): void {
    const at = this.#attribute(type, 8);
    this.#view.setBigUint64(at, value);
  }

  data(type: number, bytes: Uint8Array): void {
    const at = this.#attribute(type, bytes.length);
    this.#put(at, bytes);
  }

  /** An attribute that contains one attribute with bytes: most of a large transaction consists of these. */
  nestedData(type: number, innerType: number, bytes: Uint8Array): void {
    const at = this.#attribute(type | NLA_F_NESTED, 4 + align(bytes.length));
    this.#halves[at >> 1] = 4 + bytes.length;
    this.#halves[(at >> 1) + 1] = innerType;
    this.#put(at + 4, bytes);
  }

  /** Text with a terminating NUL, after an optional prefix of bytes. */
  string(type: number, text: string, prefix?: Uint8Array): void {
    const before = prefix?.length ?? 0;
    const bytes = asciiLength(text) ?? encoder.encode(text);
    const length = before + (typeof bytes === 'number' ? bytes : bytes.length);
    const at = this.#attribute(type, length + 1);
    // Clears the terminator and the padding: the last word of the attribute.
    this.#words[(at + length) >> 2] = 0;
    if (prefix) this.#copy(at, prefix);
    if (typeof bytes !== 'number') this.#copy(at + before, bytes);
    else for (let i = 0; i < bytes; i++) this.#bytes[at + before + i] = text.charCodeAt(i);
  }

  /** Removes everything written from offset `length` on. */
  truncate(length: number): void {
    this.#length = length;
  }

  /** Writes an attribute's header; returns the offset of its value. */
  #attribute(type: number, length: number): number {
    if (length + 4 > maxAttributeLength) throw tooLong(length + 4);
    const start = this.#reserve(4 + align(length));
    this.#halves[start >> 1] = 4 + length;
    this.#halves[(start >> 1) + 1] = type;
    return start + 4;
  }

  /** Copies bytes and clears the padding after them: the buffer may contain parts of a truncated message. */
  #put(at: number, bytes: Uint8Array): void {
    const length = bytes.length;
    if (length & 3) this.#words[(at + length) >> 2] = 0;
    this.#copy(at, bytes);
  }

  #copy(at: number, bytes: Uint8Array): void {
    const target = this.#bytes;
    if (bytes.length > 32) target.set(bytes, at);
    else for (let i = 0; i < bytes.length; i++) target[at + i] = bytes[i] ?? 0;
  }

  #reserve(length: number): number {
    const start = this.#length;
    const end = start + length;
    if (end > this.#bytes.length) this.#grow(end);
    this.#length = end;
    return start;
  }

  #grow(needed: number): void {
    const written = this.bytes();
    const buffer = new ArrayBuffer(Math.max(needed, this.#bytes.length * 2));
    this.#bytes = new Uint8Array(buffer);
    this.#halves = new Uint16Array(buffer);
    this.#words = new Uint32Array(buffer);
    this.#view = new DataView(buffer);
    this.#bytes.set(written);
  }
}

/** The length of an ASCII text in bytes; undefined for any other text. */
function asciiLength(text: string): number | undefined {
  for (let i = 0; i < text.length; i++) if (text.charCodeAt(i) > 0x7f) return undefined;
  return text.length;
}

function tooLong(length: number): RangeError {
  return new RangeError(`netlink attribute of ${length} bytes exceeds ${maxAttributeLength}`);
}
