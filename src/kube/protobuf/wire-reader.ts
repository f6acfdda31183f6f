import type { Intern } from '../../lib/intern.ts';
import { FieldFault } from '../fields.ts';
import type { Message } from './message.ts';
import { NamePacker } from './name-packer.ts';
import { readText, TextCache } from './text-cache.ts';

/** How a value is written: what follows the number of its field. */
export const wire = { varint: 0, fixed64: 1, bytes: 2, fixed32: 5 } as const;

/** A varint has at most this many bytes. */
export const maxVarintBytes = 10;

/** Where a value begins and ends. */
export interface Range {
  readonly start: number;
  readonly end: number;
}

/** Where the value of a field begins, before its length. */
interface Place {
  readonly at: number;
  readonly type: number;
}

/**
 * Reads the fields of protobuf messages. `next` moves to the next field; then call the method for its type, or `skip`.
 * A value of another type, and bytes that are no message, give a `FieldFault`.
 */
export class WireReader {
  readonly #texts = new TextCache();
  /** Names of the current object that are kept in packed form. */
  readonly names = new NamePacker();
  #intern: Intern = (text) => text;
  #bytes: Buffer = Buffer.alloc(0);
  #at = 0;
  #end = 0;
  #type = 0;
  /** The number of the current field. */
  field = 0;

  /** Starts with another message: the bytes from `start` to `end`. */
  open(bytes: Buffer, start: number, end: number, intern = this.#intern): this {
    this.#bytes = bytes;
    this.#at = start;
    this.#end = end;
    this.#intern = intern;
    return this;
  }

  /** Moves to the next field; false at the end of the message. */
  next(): boolean {
    if (this.#at >= this.#end) return false;
    const tag = this.#varint();
    this.#type = tag & 7;
    this.field = Math.floor(tag / 8);
    if (this.field < 1 || tag > 0xffff_ffff) throw malformed(`a field with tag ${tag}`);
    return true;
  }

  skip(): void {
    if (this.#type === wire.bytes) this.#at = this.#valueEnd();
    else this.#skipNumber();
  }

  /** A text; `index` is its place if it belongs to a list. */
  text(name: string, index?: number): string {
    const end = this.#textEnd(name, index);
    return this.#checked(readText(this.#bytes, this.#at, end), end, name, index);
  }

  /** A text that repeats across objects: all of them share one copy. */
  shared(name: string, index?: number): string {
    const end = this.#textEnd(name, index);
    return this.#checked(this.#texts.interned(this.#bytes, this.#at, end, this.#intern), end, name, index);
  }

  boolean(name: string): boolean {
    if (this.#type !== wire.varint) throw this.#fault(name, 'true or false');
    return this.#varint() !== 0;
  }

  integer(name: string, max: number): number {
    if (this.#type !== wire.varint) throw this.#fault(name, integerUpTo(max));
    const value = this.#varint();
    if (value < 0 || value > max) throw new FieldFault(name, value, integerUpTo(max));
    return value;
  }

  /** An integer of 64 bits; exact up to 2^53. */
  long(name: string): number {
    if (this.#type !== wire.varint) throw this.#fault(name, 'an integer');
    return this.#varint();
  }

  /** Reads a nested message into `target`; `index` is its place if it belongs to a list. */
  message<T>(name: string, target: T, message: Message<T>, index?: number): T {
    if (this.#type !== wire.bytes) throw this.#fault(pathOf(name, index), 'an object');
    const outer = this.#end;
    this.#end = this.#valueEnd();
    try {
      this.read(target, message);
    } catch (error) {
      throw error instanceof FieldFault ? error.inside(pathOf(name, index)) : error;
    }
    this.#end = outer;
    return target;
  }

  /** Reads fields of the current message into `target`, and returns to its beginning. */
  preview<T>(target: T, message: Message<T>): void {
    const start = this.#at;
    this.read(target, message);
    this.#at = start;
  }

  /** Reads the fields of the current message into `target`. */
  read<T>(target: T, message: Message<T>): T {
    while (this.next()) {
      const readField = message[this.field];
      if (readField === undefined) this.skip();
      else readField(this, target);
    }
    return target;
  }

  /** The shared copy of a text. */
  intern(text: string): string {
    return this.#intern(text);
  }

  /** Packs the text from `start` to `end`; `path` names it if it is not UTF-8. */
  packName(start: number, end: number, path: () => string): void {
    if (!this.names.add(this.#bytes, start, end)) throw this.#notUtf8(path(), start, end);
  }

  /** The text from `start` to `end`. */
  textOf(start: number, end: number, path: () => string): string {
    const text = readText(this.#bytes, start, end);
    if (text === undefined) throw this.#notUtf8(path(), start, end);
    return text;
  }

  /** Reads an entry of a map of texts: its value if its key is `key`, else undefined. */
  valueOf(name: string, key: Buffer): string | undefined {
    const { isWanted, value } = this.message(name, { key, isWanted: false, value: undefined }, entry);
    if (!isWanted) return undefined;
    return value === undefined ? '' : this.#textAt(value, `${name}["${key}"]`);
  }

  /** Reads an entry of a map of texts whose key begins with `prefix`: what follows it, and the value; else undefined. */
  entryUnder(name: string, prefix: Buffer): { readonly name: string; readonly value: string } | undefined {
    const found = this.message(name, { prefix, key: undefined, value: undefined }, prefixedEntry);
    if (!found.key) return undefined;
    const key = this.#textAt(found.key, name);
    const value = found.value ? this.#textAt(found.value, `${name}["${key}"]`) : '';
    return { name: key.slice(prefix.length), value };
  }

  /** The place of the current field. */
  here(): Place {
    return { at: this.#at, type: this.#type };
  }

  /** The place of the current field, which is passed over. */
  place(): Place {
    const place = this.here();
    this.skip();
    return place;
  }

  /** Reads a text that was passed over. */
  #textAt({ at, type }: Place, path: string): string {
    const next = this.#at;
    this.#at = at;
    this.#type = type;
    const text = this.text(path);
    this.#at = next;
    return text;
  }

  /** Whether the current field is this text. */
  isText(name: string, text: Buffer): boolean {
    const { start, end } = this.range(name, 'a string');
    return end - start === text.length && text.compare(this.#bytes, start, end) === 0;
  }

  /** Whether the current field is a text that begins so. */
  beginsWith(name: string, prefix: Buffer): boolean {
    const { start, end } = this.range(name, 'a string');
    return end - start >= prefix.length && prefix.compare(this.#bytes, start, start + prefix.length) === 0;
  }

  /** The place of the current field's bytes. */
  range(name: string, wanted = 'bytes'): Range {
    if (this.#type !== wire.bytes) throw this.#fault(name, wanted);
    const end = this.#valueEnd();
    const start = this.#at;
    this.#at = end;
    return { start, end };
  }

  #textEnd(name: string, index: number | undefined): number {
    if (this.#type !== wire.bytes) throw this.#fault(pathOf(name, index), 'a string');
    return this.#valueEnd();
  }

  #checked(text: string | undefined, end: number, name: string, index: number | undefined): string {
    if (text === undefined) throw this.#notUtf8(pathOf(name, index), this.#at, end);
    this.#at = end;
    return text;
  }

  #notUtf8(path: string, start: number, end: number): FieldFault {
    return new FieldFault(path, this.#bytes.toString('latin1', start, end), 'text in UTF-8');
  }

  /** Reads the length of a value; returns where the value ends. */
  #valueEnd(): number {
    const length = this.#varint();
    if (length < 0 || length > this.#end - this.#at)
      throw malformed('a field that is longer than its message');
    return this.#at + length;
  }

  #skipNumber(): void {
    if (this.#type === wire.varint) this.#varint();
    else if (this.#type === wire.fixed64) this.#skipBytes(8);
    else if (this.#type === wire.fixed32) this.#skipBytes(4);
    else throw malformed(`a field of the unknown wire type ${this.#type}`);
  }

  #skipBytes(count: number): void {
    if (count > this.#end - this.#at) throw malformed('a message that ends inside a field');
    this.#at += count;
  }

  /** The fault of a field whose value has another type than `wanted`. */
  #fault(name: string, wanted: string): FieldFault {
    const from = this.#at;
    this.skip();
    const value =
      this.#type === wire.bytes ? this.#bytes.toString('latin1', from, this.#at) : this.#numberAt(from);
    return new FieldFault(name, value, wanted);
  }

  #numberAt(from: number): number {
    const until = this.#at;
    this.#at = from;
    const value = this.#type === wire.varint ? this.#varint() : this.#bytes.readUIntLE(from, 4);
    this.#at = until;
    return value;
  }

  /** Reads an integer of 64 bits; exact below 2^53. Most have one or two bytes. */
  #varint(): number {
    const first = this.#bytes[this.#at];
    if (first === undefined || this.#at + 1 >= this.#end) return this.#longVarint();
    if (first < 0x80) {
      this.#at++;
      return first;
    }
    const second = this.#bytes[this.#at + 1] ?? 0;
    if (second >= 0x80) return this.#longVarint();
    this.#at += 2;
    return (first & 0x7f) + second * 0x80;
  }

  #longVarint(): number {
    let low = 0;
    let high = 0;
    for (let i = 0; i < maxVarintBytes; i++) {
      const byte = this.#bytes[this.#at];
      if (byte === undefined || this.#at >= this.#end) {
        throw malformed('a message that ends inside a number');
      }
      this.#at++;
      // Two parts: the lowest 28 bits, and the other 36, which have the sign. Each is exact.
      if (i < 4) low += (byte & 0x7f) * 2 ** (7 * i);
      else high += (byte & 0x7f) * 2 ** (7 * (i - 4));
      if (byte < 0x80) return low + (high >= 2 ** 35 ? high - 2 ** 36 : high) * 2 ** 28;
    }
    throw malformed(`a number of more than ${maxVarintBytes} bytes`);
  }
}

/** An entry of a map; its key may follow its value. */
const entry: Message<{ readonly key: Buffer; isWanted: boolean; value: Place | undefined }> = {
  1: (reader, found) => {
    found.isWanted = reader.isText('', found.key);
  },
  2: (reader, found) => {
    found.value = reader.place();
  },
};

const prefixedEntry: Message<{ readonly prefix: Buffer; key: Place | undefined; value: Place | undefined }> =
  {
    1: (reader, found) => {
      const key = reader.here();
      found.key = reader.beginsWith('', found.prefix) ? key : undefined;
    },
    2: (reader, found) => {
      found.value = reader.place();
    },
  };

function integerUpTo(max: number): string {
  return `an integer between 0 and ${max}`;
}

function malformed(found: string): FieldFault {
  return new FieldFault('', found, 'a protobuf message');
}

function pathOf(name: string, index: number | undefined): string {
  return index === undefined ? name : `${name}[${index}]`;
}
