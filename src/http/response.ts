import { EventEmitter } from 'node:events';
import { http } from '../lib/http.ts';
import type { RequestHead } from './request-head.ts';

type Fields = Readonly<Record<string, string | number>>;
export type Bytes = string | Uint8Array;

/** `write` returns false when this many bytes wait for the client. */
const roomBytes = 16 * 1024;

interface Events {
  /** There is room for more. */
  drain: [];
  /** The client has sent its end. It may be gone, or still read the answer. */
  hangup: [];
  /** The response is complete or given up. */
  close: [];
}

/** What a response needs of its connection. */
export interface Outlet {
  /** The time, as HTTP writes it. */
  readonly date: string;
  /** Sends these bytes, one after the other; calls back when the kernel has taken them. */
  send(bytes: readonly Bytes[], callback: (error?: Error | null) => void): void;
  /** The response is complete, or was given up. */
  ended(isComplete: boolean): void;
}

/**
 * The answer to one request, formatted as Go's server does: HTTP/1.0 gets HTTP/1.0, and a body without Content-Length is
 * chunked, or ends with the connection. It takes no more than the client reads: `write` returns false until `drain`. It
 * has the names of Node's Writable, which costs more than all else that a request needs.
 */
export class HttpResponse extends EventEmitter<Events> {
  readonly request: RequestHead;
  readonly #outlet: Outlet;
  readonly #fields = new Map<string, string | number>();
  #status = 200;
  #isHeadSet = false;
  #isHeadSent = false;
  /** Pieces of the body that wait until those before are sent. */
  #waiting: Bytes[] = [];
  #isSending = false;
  #isDrainAwaited = false;
  /** Length of the body that waits or is being sent. */
  writableLength = 0;
  writableEnded = false;
  /** Whether all of it was sent. */
  writableFinished = false;
  /** Whether it was sent or given up. */
  destroyed = false;
  /** Whether the connection can serve another request afterwards. */
  isKept: boolean;
  /** Whether it goes on until the client goes. */
  isStream = false;

  constructor(request: RequestHead, isKept: boolean, outlet: Outlet) {
    super();
    this.request = request;
    this.isKept = isKept;
    this.#outlet = outlet;
  }

  /** Whether it is too late for another status. */
  get headersSent(): boolean {
    return this.#isHeadSet || this.#isHeadSent;
  }

  /** Sets the status and more fields. They are sent with the first bytes of the body. */
  writeHead(status: number, fields: Fields): this {
    this.#status = status;
    this.#isHeadSet = true;
    return this.setFields(fields);
  }

  setFields(fields: Fields): this {
    for (const name in fields) this.#fields.set(name, fields[name] ?? '');
    return this;
  }

  /** Sends the head before there is a body, which goes on until the client goes. */
  flushHeaders(): void {
    this.isStream = true;
    if (!this.#isHeadSent) this.#outlet.send([this.#head()], () => {});
  }

  /** Returns whether there is room for more; if not, `drain` tells when. */
  write(chunk: Bytes): boolean {
    if (this.destroyed || this.writableEnded) return false;
    this.#add(chunk);
    this.#flush();
    this.#isDrainAwaited = this.writableLength >= roomBytes;
    return !this.#isDrainAwaited;
  }

  end(chunk: Bytes = ''): this {
    if (this.destroyed || this.writableEnded) return this;
    this.writableEnded = true;
    this.#add(chunk);
    this.#flush();
    return this;
  }

  /** Gives it up if it is not complete. */
  destroy(): void {
    if (this.destroyed) return;
    this.destroyed = true;
    this.#waiting = [];
    this.#outlet.ended(this.writableFinished);
    this.emit('close');
  }

  #add(chunk: Bytes): void {
    if (chunk.length === 0 || this.request.method === 'HEAD') return;
    this.#waiting.push(chunk);
    this.writableLength += chunk.length;
  }

  /** Sends all that waits, unless something is being sent. */
  #flush(): void {
    if (this.#isSending || this.destroyed) return;
    const isEnd = this.writableEnded;
    const body = joined(this.#waiting);
    this.#waiting = [];
    const bytes = body.length > 0 || isEnd ? this.#framed(body, isEnd) : [];
    if (bytes.length > 0) {
      this.#isSending = true;
      this.#outlet.send(bytes, (error) => this.#sent(body.length, isEnd, error));
    } else if (isEnd) this.#finish();
  }

  #sent(length: number, isEnd: boolean, error?: Error | null): void {
    this.#isSending = false;
    this.writableLength -= length;
    if (error) this.destroy();
    else if (isEnd) this.#finish();
    else this.#flush();
    if (!this.#isDrainAwaited || this.writableLength > 0 || this.destroyed) return;
    this.#isDrainAwaited = false;
    this.emit('drain');
  }

  #finish(): void {
    this.writableFinished = true;
    this.destroy();
  }

  /**
   * The body as it is sent, after the head if that was not sent, and with its end. A body that is not text is not
   * copied: other responses may have the same one.
   */
  #framed(body: Bytes, isEnd: boolean): readonly Bytes[] {
    const head = this.#isHeadSent ? '' : this.#head();
    const isChunked = this.#isChunked && this.request.method !== 'HEAD';
    const isPiece = isChunked && body.length > 0;
    const before = isPiece ? `${head}${Buffer.byteLength(body).toString(16)}\r\n` : head;
    const after = `${isPiece ? '\r\n' : ''}${isChunked && isEnd ? '0\r\n\r\n' : ''}`;
    const pieces = typeof body === 'string' ? [before + body + after] : [before, body, after];
    return pieces.filter(({ length }) => length > 0);
  }

  get #isChunked(): boolean {
    return this.request.minor > 0 && !this.#fields.has('Content-Length');
  }

  #head(): string {
    this.#isHeadSent = true;
    const { minor } = this.request;
    const length = this.#fields.get('Content-Length');
    if (minor === 0 && length === undefined) this.isKept = false;
    let text = `HTTP/1.${minor} ${this.#status} ${http.STATUS_CODES[this.#status] ?? ''}\r\n`;
    for (const [name, value] of this.#fields) if (name !== 'Content-Length') text += `${name}: ${value}\r\n`;
    text += `Date: ${this.#outlet.date}\r\n`;
    if (length !== undefined) text += `Content-Length: ${length}\r\n`;
    else if (minor > 0) text += 'Transfer-Encoding: chunked\r\n';
    if (minor > 0 && !this.isKept) text += 'Connection: close\r\n';
    if (minor === 0 && this.isKept) text += 'Connection: keep-alive\r\n';
    return `${text}\r\n`;
  }
}

function joined(pieces: readonly Bytes[]): Bytes {
  if (pieces.length === 1 && pieces[0] !== undefined) return pieces[0];
  if (pieces.every((piece) => typeof piece === 'string')) return pieces.join('');
  return Buffer.concat(pieces.map((piece) => (typeof piece === 'string' ? Buffer.from(piece) : piece)));
}
