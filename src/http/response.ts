import { Writable } from 'node:stream';
import { http } from '../lib/http.ts';
import type { RequestHead } from './request-head.ts';

type Fields = Readonly<Record<string, string | number>>;

/** What a response needs of its connection. */
export interface Outlet {
  /** Sends bytes; calls back when the kernel has taken them. */
  send(bytes: string | Uint8Array, callback: (error?: Error | null) => void): void;
  /** The response is complete, or was given up. */
  ended(isComplete: boolean): void;
}

/**
 * The answer to one request, formatted as Go's server does: HTTP/1.0 gets HTTP/1.0, and a body without Content-Length is
 * chunked, or ends with the connection. It takes no more than the client reads: `write` returns false until then.
 */
export class HttpResponse extends Writable {
  readonly request: RequestHead;
  readonly #outlet: Outlet;
  readonly #fields = new Map<string, string>();
  #status = 200;
  #isHeadSet = false;
  #isHeadSent = false;
  /** Whether the connection can serve another request afterwards. */
  isKept: boolean;
  /** Whether it goes on until the client goes. */
  isStream = false;

  constructor(request: RequestHead, isKept: boolean, outlet: Outlet) {
    super({ decodeStrings: false });
    this.request = request;
    this.isKept = isKept;
    this.#outlet = outlet;
    // A client may go at any time; `close` tells.
    this.on('error', () => {});
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
    for (const [name, value] of Object.entries(fields)) this.#fields.set(name, String(value));
    return this;
  }

  /** Sends the head before there is a body, which goes on until the client goes. */
  flushHeaders(): void {
    this.isStream = true;
    if (!this.#isHeadSent) this.#outlet.send(this.#head(), () => {});
  }

  override _write(
    chunk: string | Uint8Array,
    _: BufferEncoding,
    callback: (error?: Error | null) => void,
  ): void {
    const head = this.#isHeadSent ? '' : this.#head();
    if (this.request.method === 'HEAD' || chunk.length === 0) {
      if (head === '') callback();
      else this.#outlet.send(head, callback);
      return;
    }
    const [before, after] = this.#isChunked
      ? [`${head}${Buffer.byteLength(chunk).toString(16)}\r\n`, '\r\n']
      : [head, ''];
    if (typeof chunk === 'string') this.#outlet.send(before + chunk + after, callback);
    else this.#outlet.send(Buffer.concat([Buffer.from(before), chunk, Buffer.from(after)]), callback);
  }

  override _writev(
    chunks: { chunk: string | Uint8Array; encoding: BufferEncoding }[],
    callback: (error?: Error | null) => void,
  ): void {
    const pieces = chunks.map(({ chunk }) => Buffer.from(chunk));
    this._write(Buffer.concat(pieces), 'utf8', callback);
  }

  override _final(callback: (error?: Error | null) => void): void {
    const head = this.#isHeadSent ? '' : this.#head();
    const end = this.#isChunked && this.request.method !== 'HEAD' ? '0\r\n\r\n' : '';
    if (head + end === '') callback();
    else this.#outlet.send(head + end, callback);
  }

  override _destroy(error: Error | null, callback: (error?: Error | null) => void): void {
    this.#outlet.ended(this.writableFinished);
    callback(error);
  }

  get #isChunked(): boolean {
    return this.request.minor > 0 && !this.#fields.has('Content-Length');
  }

  #head(): string {
    this.#isHeadSent = true;
    const { minor } = this.request;
    const length = this.#fields.get('Content-Length');
    if (minor === 0 && length === undefined) this.isKept = false;
    const lines = [
      `HTTP/1.${minor} ${this.#status} ${http.STATUS_CODES[this.#status] ?? ''}`,
      ...[...this.#fields]
        .filter(([name]) => name !== 'Content-Length')
        .map(([name, value]) => `${name}: ${value}`),
      `Date: ${new Date().toUTCString()}`,
    ];
    if (length !== undefined) lines.push(`Content-Length: ${length}`);
    else if (minor > 0) lines.push('Transfer-Encoding: chunked');
    if (minor > 0 && !this.isKept) lines.push('Connection: close');
    if (minor === 0 && this.isKept) lines.push('Connection: keep-alive');
    return `${lines.join('\r\n')}\r\n\r\n`;
  }
}
