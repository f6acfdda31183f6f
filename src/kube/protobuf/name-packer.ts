import { packNames, unpackNames } from '../../model/pod-names.ts';
import { isAscii, readText } from './text-cache.ts';

/** The numbers of a packed name must fit in one byte each. */
const maxBytes = 255;

/**
 * Packs the names of one object as `packNames` does, without a string for each of them. All names lie in the same bytes.
 * Those that are long or not ASCII are rare; after one of them, strings do it.
 */
export class NamePacker {
  #packed = Buffer.alloc(1024);
  #length = 0;
  /** Where the last name that is not empty lies. */
  #start = 0;
  #end = 0;
  /** All names, once one of them was not packed. */
  #names: string[] | undefined;

  /** Starts with another object. */
  begin(): void {
    this.#length = 0;
    this.#start = 0;
    this.#end = 0;
    this.#names = undefined;
  }

  /** Adds the name in `bytes` from `start` to `end`. Returns false if it is not UTF-8. */
  add(bytes: Buffer, start: number, end: number): boolean {
    if (this.#names === undefined && this.#pack(bytes, start, end)) return true;
    const name = readText(bytes, start, end);
    if (name !== undefined) this.addText(name);
    return name !== undefined;
  }

  addText(name: string): void {
    this.#names ??= unpackNames(this.#packed.toString('latin1', 0, this.#length));
    this.#names.push(name);
  }

  /** Adds an empty name. */
  addNone(): void {
    if (this.#names !== undefined) this.#names.push('');
    else this.#writeHead(0, 0);
  }

  /** The packed names; undefined when all are empty. */
  end(): string | undefined {
    if (this.#names !== undefined) return packNames(this.#names);
    return this.#end === 0 ? undefined : this.#packed.toString('latin1', 0, this.#length);
  }

  #pack(bytes: Buffer, start: number, end: number): boolean {
    const length = end - start;
    if (length === 0 || length > maxBytes || !isAscii(bytes, start, end)) return false;
    const limit = Math.min(length, this.#end - this.#start);
    let shared = 0;
    while (shared < limit && bytes[this.#start + shared] === bytes[start + shared]) shared++;
    this.#writeHead(shared, length - shared);
    for (let at = start + shared; at < end; at++) this.#packed[this.#length++] = bytes[at] ?? 0;
    this.#start = start;
    this.#end = end;
    return true;
  }

  /** Writes the two numbers before a name, and makes room for the longest name. */
  #writeHead(shared: number, rest: number): void {
    if (this.#length + 2 + maxBytes > this.#packed.length) {
      this.#packed = Buffer.concat([this.#packed], this.#packed.length * 2);
    }
    this.#packed[this.#length++] = shared;
    this.#packed[this.#length++] = rest;
  }
}
