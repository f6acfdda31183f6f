import type { Socket } from 'node:net';
import { http } from './http.ts';

/** A complete answer. */
export interface HttpAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** Longer than load balancers and scrapers usually wait between two requests, so that they can keep a connection. */
export const idleTimeoutMs = 150_000;

/** A longer request head gets a 431. */
export const maxHeadBytes = 64 * 1024;

/** A longer request body is not awaited: the connection ends after the answer, and is cut when more comes. */
const maxSkippedBytes = 256 * 1024;

/**
 * Answers every request on a connection with what `answer` returns, whatever its method and path. Reads requests as
 * Go's server does: lines may end without CR, any method is served, HTTP/1.0 gets HTTP/1.0. Node's parser refuses the
 * first two. What is not a request gets a 400, and the connection ends.
 */
export function respond(socket: Socket, answer: () => HttpAnswer): void {
  const connection = new Connection(socket, answer);
  socket.setTimeout(idleTimeoutMs, () => socket.destroy());
  socket.on('error', () => socket.destroy());
  socket.setEncoding('latin1');
  socket.on('data', (text) => connection.read(String(text)));
}

class Connection {
  readonly #socket: Socket;
  readonly #answer: () => HttpAnswer;
  #unread = '';
  /** Bytes of a request body still to come. */
  #skipped = 0;
  #hasEnded = false;
  #bytesAfterEnd = 0;

  constructor(socket: Socket, answer: () => HttpAnswer) {
    this.#socket = socket;
    this.#answer = answer;
  }

  read(text: string): void {
    if (this.#hasEnded) {
      this.#discard(text);
      return;
    }
    this.#unread += text;
    while (!this.#hasEnded && this.#skipBody() && this.#takeRequest());
  }

  /** A client may not have read the answer yet while it sends the rest of its request. */
  #discard(text: string): void {
    this.#unread = '';
    this.#bytesAfterEnd += text.length;
    if (this.#bytesAfterEnd > maxSkippedBytes) this.#socket.destroy();
  }

  /** Returns whether the next byte belongs to a request head. */
  #skipBody(): boolean {
    const present = Math.min(this.#skipped, this.#unread.length);
    this.#unread = this.#unread.slice(present);
    this.#skipped -= present;
    return this.#skipped === 0;
  }

  /** Answers the next request; returns false when it is not complete yet. */
  #takeRequest(): boolean {
    const lineEnd = this.#unread.indexOf('\n');
    if (lineEnd < 0) return this.#refuseIfLong();
    const request = readRequestLine(this.#unread.slice(0, lineEnd).replace(/\r$/, ''));
    if (typeof request === 'string') {
      this.#refuse(request);
      return false;
    }
    const end = /\n\r?\n/.exec(this.#unread);
    if (!end || end.index > maxHeadBytes) return this.#refuseIfLong();
    const head = this.#unread.slice(lineEnd, end.index);
    this.#unread = this.#unread.slice(end.index + end[0].length);
    this.#reply(request, readHeaders(head));
    return true;
  }

  #refuseIfLong(): false {
    if (this.#unread.length > maxHeadBytes) this.#refuse('431 Request Header Fields Too Large');
    return false;
  }

  #reply(request: RequestLine, headers: Headers | undefined): void {
    const refusal = headers ? refusalOf(request, headers) : badRequest;
    if (!headers || refusal !== undefined) {
      this.#refuse(refusal ?? badRequest);
      return;
    }
    const length = Number(headers.get('content-length')?.[0] ?? 0);
    const isKept = isKeptAlive(request, headers) && !hasUnskippableBody(headers, length);
    const { status, headers: fields, body } = this.#answer();
    const lines = [
      `HTTP/1.${request.minor} ${status} ${http.STATUS_CODES[status] ?? ''}`,
      ...Object.entries(fields).map(([name, value]) => `${name}: ${value}`),
      `Date: ${new Date().toUTCString()}`,
      `Content-Length: ${Buffer.byteLength(body)}`,
      ...connectionField(request, isKept),
    ];
    this.#send(`${lines.join('\r\n')}\r\n\r\n${request.method === 'HEAD' ? '' : body}`, isKept);
    this.#skipped = length;
  }

  #refuse(status: string): void {
    this.#send(invalidRequestReply(status), false);
  }

  #send(text: string, isKept: boolean): void {
    this.#hasEnded = !isKept;
    if (isKept) this.#socket.write(text);
    else this.#socket.end(text);
  }
}

/** What a client gets for bytes that are not a valid request. */
export function invalidRequestReply(status: string): string {
  const head = `HTTP/1.1 ${status}\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close`;
  return `${head}\r\n\r\n${status}`;
}

const badRequest = '400 Bad Request';

interface RequestLine {
  readonly method: string;
  /** Of HTTP/1. */
  readonly minor: number;
}

/** Reads `METHOD TARGET HTTP/1.x`; returns the status of a refusal when it is anything else. */
function readRequestLine(line: string): RequestLine | string {
  const [, method = '', target = '', major, minor] =
    /^([\w!#$%&'*+.^`|~-]+) ([^ ]+) HTTP\/(\d)\.(\d)$/.exec(line) ?? [];
  const isTarget = /^(\/|\*$|[a-z][a-z\d+.-]*:\/\/)/i.test(target) || method === 'CONNECT';
  if (!isTarget || /\p{Cc}/u.test(target)) return badRequest;
  if (major !== '1') return '505 HTTP Version Not Supported: unsupported protocol version';
  return { method, minor: minor === '0' ? 0 : 1 };
}

/** Values by name in lower case. */
type Headers = ReadonlyMap<string, readonly string[]>;

/** Reads header lines; returns undefined when one has no name. */
function readHeaders(head: string): Headers | undefined {
  const headers = new Map<string, string[]>();
  for (const line of head.split('\n').filter((text) => text.trim() !== '')) {
    // A line that begins with a blank continues the one before it.
    if (/^[ \t]/.test(line) && headers.size > 0) continue;
    const colon = line.indexOf(':');
    if (colon < 1) return undefined;
    const name = line.slice(0, colon).toLowerCase();
    headers.set(name, [...(headers.get(name) ?? []), line.slice(colon + 1).trim()]);
  }
  return headers;
}

/** The status of a refusal; undefined when the request can be answered. */
function refusalOf({ minor }: RequestLine, headers: Headers): string | undefined {
  const hosts = headers.get('host')?.length ?? 0;
  if (hosts > 1) return badRequest;
  if (hosts === 0 && minor > 0) return `${badRequest}: missing required Host header`;
  if (headers.get('content-length')?.some((text) => !/^\d+$/.test(text))) return badRequest;
  const expect = headers.get('expect')?.[0]?.toLowerCase() ?? '';
  return expect === '' || expect === '100-continue' ? undefined : '417 Expectation Failed';
}

function isKeptAlive({ minor }: RequestLine, headers: Headers): boolean {
  const words = (headers.get('connection') ?? []).flatMap((text) => text.toLowerCase().split(/ *, */));
  return minor > 0 ? !words.includes('close') : words.includes('keep-alive');
}

function hasUnskippableBody(headers: Headers, length: number): boolean {
  return headers.has('transfer-encoding') || headers.has('expect') || length > maxSkippedBytes;
}

function connectionField({ minor }: RequestLine, isKept: boolean): string[] {
  if (isKept) return minor > 0 ? [] : ['Connection: keep-alive'];
  return minor > 0 ? ['Connection: close'] : [];
}
