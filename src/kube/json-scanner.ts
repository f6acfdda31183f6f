import { StreamError } from './stream-error.ts';

const quote = 0x22;
const backslash = 0x5c;
const openBracket = 0x5b;
const closeBracket = 0x5d;
const openBrace = 0x7b;
const closeBrace = 0x7d;

/** No Kubernetes object nests anywhere near this deep. */
const maxDepth = 512;

/**
 * Finds the end of one JSON object in a stream of bytes. It looks only at brackets and strings; JSON.parse checks the
 * rest.
 */
export class ValueScanner {
  #depth = 0;
  #inString = false;
  #escaped = false;
  readonly #pauseAtArrays: boolean;

  /** With `pauseAtArrays`, `scan` also stops after the `[` of each array that is a member of the object. */
  constructor(pauseAtArrays = false) {
    this.#pauseAtArrays = pauseAtArrays;
  }

  /** Returns the index after the byte that it stopped at, or -1 when the value continues in the next chunk. */
  scan(chunk: Uint8Array, from: number): number {
    let depth = this.#depth;
    let inString = this.#inString;
    let escaped = this.#escaped;
    let end = -1;
    for (let i = from; i < chunk.length; i++) {
      const byte = chunk[i];
      if (inString) {
        if (escaped) escaped = false;
        else if (byte === backslash) escaped = true;
        else if (byte === quote) inString = false;
      } else if (byte === quote) {
        inString = true;
      } else if (byte === openBrace || byte === openBracket) {
        if (++depth > maxDepth) throw new StreamError(`JSON nested deeper than ${maxDepth} levels`);
        if (depth === 2 && byte === openBracket && this.#pauseAtArrays) {
          end = i + 1;
          break;
        }
      } else if ((byte === closeBrace || byte === closeBracket) && --depth === 0) {
        end = i + 1;
        break;
      }
    }
    this.#depth = depth;
    this.#inString = inString;
    this.#escaped = escaped;
    return end;
  }

  /** Whether the value is complete. */
  get done(): boolean {
    return this.#depth === 0;
  }
}

/** Collects the bytes of one value from several chunks, up to a limit. */
export class ByteGatherer {
  readonly #what: string;
  readonly #limit: number;
  #pieces: Uint8Array[] = [];
  #length = 0;

  constructor(what: string, limit: number) {
    this.#what = what;
    this.#limit = limit;
  }

  add(piece: Uint8Array): void {
    this.#length += piece.length;
    if (this.#length > this.#limit)
      throw new StreamError(`${this.#what} is larger than ${this.#limit} bytes`);
    this.#pieces.push(piece);
  }

  /** The last `length` bytes, or all if there are fewer. */
  tail(length: number): string {
    const pieces: Uint8Array[] = [];
    let missing = length;
    for (let i = this.#pieces.length - 1; i >= 0 && missing > 0; i--) {
      const piece = this.#pieces[i]?.subarray(-missing) ?? new Uint8Array();
      pieces.unshift(piece);
      missing -= piece.length;
    }
    return Buffer.concat(pieces).toString('latin1');
  }

  /** Parses the collected bytes and empties the gatherer. */
  parse(): unknown {
    const text = this.#text();
    this.#pieces = [];
    this.#length = 0;
    try {
      return JSON.parse(text);
    } catch {
      throw new StreamError(`${this.#what} is not valid JSON: ${JSON.stringify(text.slice(0, 60))}`);
    }
  }

  #text(): string {
    const [only] = this.#pieces;
    const bytes = this.#pieces.length === 1 && only !== undefined ? only : Buffer.concat(this.#pieces);
    try {
      return utf8.decode(bytes);
    } catch {
      throw new StreamError(`${this.#what} is not valid UTF-8`);
    }
  }
}

const utf8 = new TextDecoder('utf-8', { fatal: true });

export function isSpace(byte: number | undefined): boolean {
  return byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09;
}
