import type { RequestHead } from './request-head.ts';

/** Longest part of a request body that is kept. */
const mostKept = 4 * 1024;
/** A longer line between chunks is a fault. */
const maxLineBytes = 4 * 1024;

/** What comes next in a body. Lines with sizes and a trailer only exist in a body of chunks. */
type Part = 'data' | 'data end' | 'size' | 'trailer' | 'nothing';

/** The body of a request, read while it arrives. */
export class RequestBody {
  readonly #isChunked: boolean;
  #part: Part;
  /** Characters to come of the body, or of the present chunk. */
  #left: number;
  /** Its beginning. */
  kept = '';
  /** Characters that were read, with the lines between chunks. */
  length = 0;

  constructor(head: RequestHead) {
    this.#isChunked = isChunked(head);
    this.#left = this.#isChunked ? 0 : bodyLength(head);
    this.#part = this.#isChunked ? 'size' : this.#left > 0 ? 'data' : 'nothing';
  }

  get isComplete(): boolean {
    return this.#part === 'nothing';
  }

  /** Whether the program has as much of it as it may. */
  get isKept(): boolean {
    return this.isComplete || this.kept.length === mostKept;
  }

  /** Reads what a text begins with. Returns the length of what it read, or undefined if this is not a body. */
  read(text: string): number | undefined {
    let at = 0;
    while (this.#part !== 'nothing' && at < text.length) {
      const length = this.#part === 'data' ? this.#readData(text, at) : this.#readLine(text, at);
      if (length === undefined) return undefined;
      // The rest of the line is still to come.
      if (length === 0) break;
      at += length;
    }
    this.length += at;
    return at;
  }

  #readData(text: string, at: number): number {
    const length = Math.min(this.#left, text.length - at);
    if (this.kept.length < mostKept) {
      this.kept += text.slice(at, at + Math.min(length, mostKept - this.kept.length));
    }
    this.#left -= length;
    if (this.#left === 0) this.#part = this.#isChunked ? 'data end' : 'nothing';
    return length;
  }

  /** Returns the length of the line, 0 if it is not complete, undefined if it is not what has to come. */
  #readLine(text: string, at: number): number | undefined {
    const end = text.indexOf('\n', at);
    if (end < 0) return text.length - at > maxLineBytes ? undefined : 0;
    return this.#take(text.slice(at, end)) ? end + 1 - at : undefined;
  }

  /** As in Go, the lines between chunks end with CR and LF. */
  #take(line: string): boolean {
    if (this.#part === 'trailer') {
      if (line === '\r' || line === '') this.#part = 'nothing';
      return true;
    }
    if (this.#part === 'data end') {
      this.#part = 'size';
      return line === '\r';
    }
    const [, size] = /^([\da-f]{1,12})[ \t]*(?:;.*)?\r$/i.exec(line) ?? [];
    if (size === undefined) return false;
    this.#left = Number.parseInt(size, 16);
    this.#part = this.#left > 0 ? 'data' : 'trailer';
    return true;
  }
}

/** Whether the body comes in chunks. As in Go, HTTP/1.0 has none. */
export function isChunked({ minor, headers }: RequestHead): boolean {
  return minor > 0 && headers.has('transfer-encoding');
}

/** The length of a body that is not chunked. */
export function bodyLength({ headers }: RequestHead): number {
  return Number(headers.get('content-length')?.[0] ?? 0);
}
