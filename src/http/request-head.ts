import { bodyLength, isChunked } from './request-body.ts';

/** The first lines of a request. */
export interface RequestHead {
  readonly method: string;
  /** As the client sent it: path and query, perhaps with a host before. */
  readonly url: string;
  /** Of HTTP/1. */
  readonly minor: number;
  readonly headers: Headers;
}

/** Values by name in lower case. */
type Headers = ReadonlyMap<string, readonly string[]>;

/** A longer request head gets a 431. */
export const maxHeadBytes = 64 * 1024;

/** A longer request body is not awaited: the connection ends after the answer, and is cut when more comes. */
export const maxSkippedBytes = 256 * 1024;

/** A request head and its length in the text; or the status of a refusal. */
type Reading = { readonly head: RequestHead; readonly length: number } | string;

/**
 * Reads the request head at the beginning of a text, as Go's server does: lines may end without CR, and any method is
 * served. Returns undefined when the head is not complete.
 */
export function readHead(text: string): Reading | undefined {
  const lineEnd = text.indexOf('\n');
  if (lineEnd < 0) return refusalOfLength(text);
  const request = readRequestLine(text.slice(0, lineEnd).replace(/\r$/, ''));
  if (typeof request === 'string') return request;
  const end = /\n\r?\n/.exec(text);
  if (!end || end.index > maxHeadBytes) return refusalOfLength(text);
  const headers = readHeaders(text.slice(lineEnd + 1, end.index).replaceAll('\r\n', '\n'));
  if (!headers) return badRequest;
  const refusal = refusalOf(request.minor, headers);
  return refusal ?? { head: { ...request, headers }, length: end.index + end[0].length };
}

function refusalOfLength(text: string): string | undefined {
  return text.length > maxHeadBytes ? '431 Request Header Fields Too Large' : undefined;
}

/** What a client gets for bytes that are not a valid request. */
export function invalidRequestReply(status: string): string {
  const head = `HTTP/1.1 ${status}\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close`;
  return `${head}\r\n\r\n${status}`;
}

const badRequest = '400 Bad Request';
/** A method, or the name of a field. */
const tokenPattern = /^[\w!#$%&'*+.^`|~-]+$/;
const hostPattern = /^[\w!$%&'()*+,.:;=[\]~-]*$/;
/** Characters that no value has. A tab is allowed. */
const controlPattern = /[^\P{Cc}\t\x80-\x9f]/u;

/** Reads `METHOD TARGET HTTP/1.x`; returns the status of a refusal when it is anything else. */
function readRequestLine(line: string): Omit<RequestHead, 'headers'> | string {
  const [, method = '', url = '', major, minor] =
    /^([\w!#$%&'*+.^`|~-]+) ([^ ]+) HTTP\/(\d)\.(\d)$/.exec(line) ?? [];
  const isTarget = /^(\/|\*$|[a-z][a-z\d+.-]*:\/\/)/i.test(url) || method === 'CONNECT';
  if (!isTarget || /\p{Cc}/u.test(url)) return badRequest;
  if (major !== '1') return '505 HTTP Version Not Supported: unsupported protocol version';
  return { method, url, minor: minor === '0' ? 0 : 1 };
}

/** Reads header lines; returns undefined when one is not a name and a value. */
function readHeaders(head: string): Headers | undefined {
  const headers = new Map<string, string[]>();
  // A line that begins with a blank continues the one before it.
  const lines = head.replaceAll(/(?<=[^\n])\n[ \t]+/g, ' ').split('\n');
  for (const line of lines) {
    if (line === '') continue;
    const colon = line.indexOf(':');
    if (colon < 1) return undefined;
    const name = line.slice(0, colon).toLowerCase();
    const value = line.slice(colon + 1).trim();
    if (!tokenPattern.test(name) || controlPattern.test(value)) return undefined;
    headers.set(name, [...(headers.get(name) ?? []), value]);
  }
  return headers;
}

/** The status of a refusal; undefined when the request can be answered. */
function refusalOf(minor: number, headers: Headers): string | undefined {
  const encodings = minor > 0 ? headers.get('transfer-encoding') : undefined;
  if (encodings && encodings.join().toLowerCase() !== 'chunked') return '501 Not Implemented';
  if (!encodings && !isLength(headers.get('content-length'))) return badRequest;
  const [host, ...otherHosts] = headers.get('host') ?? [];
  if (host === undefined && minor > 0) return `${badRequest}: missing required Host header`;
  if (otherHosts.length > 0 || !hostPattern.test(host ?? '')) return badRequest;
  const expect = headers.get('expect')?.[0]?.toLowerCase() ?? '';
  return expect === '' || expect === '100-continue' ? undefined : '417 Expectation Failed';
}

/** Whether these values of Content-Length, if any, are one number that is exact. */
function isLength([length, ...others]: readonly string[] = []): boolean {
  if (length === undefined) return true;
  const isNumber = /^\d+$/.test(length) && Number.isSafeInteger(Number(length));
  return isNumber && others.every((other) => other === length);
}

/** Whether the client wants to send more requests on this connection, and can. */
export function isKeptAlive(head: RequestHead): boolean {
  const { minor, headers } = head;
  const words = (headers.get('connection') ?? []).flatMap((text) => text.toLowerCase().split(/[ \t,]+/));
  const isWanted = minor > 0 ? !words.includes('close') : words.includes('keep-alive');
  const hasUnskippableBody = awaitsContinue(head) || (!isChunked(head) && bodyLength(head) > maxSkippedBytes);
  return isWanted && !hasUnskippableBody;
}

/** Whether the client sends the body when it is asked to. */
export function awaitsContinue(head: RequestHead): boolean {
  const hasBody = isChunked(head) || bodyLength(head) > 0;
  return head.minor > 0 && hasBody && (head.headers.get('expect')?.[0] ?? '') !== '';
}
