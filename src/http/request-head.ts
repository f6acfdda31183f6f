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
  const headers = readHeaders(text.slice(lineEnd, end.index));
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

/** Reads `METHOD TARGET HTTP/1.x`; returns the status of a refusal when it is anything else. */
function readRequestLine(line: string): Omit<RequestHead, 'headers'> | string {
  const [, method = '', url = '', major, minor] =
    /^([\w!#$%&'*+.^`|~-]+) ([^ ]+) HTTP\/(\d)\.(\d)$/.exec(line) ?? [];
  const isTarget = /^(\/|\*$|[a-z][a-z\d+.-]*:\/\/)/i.test(url) || method === 'CONNECT';
  if (!isTarget || /\p{Cc}/u.test(url)) return badRequest;
  if (major !== '1') return '505 HTTP Version Not Supported: unsupported protocol version';
  return { method, url, minor: minor === '0' ? 0 : 1 };
}

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
function refusalOf(minor: number, headers: Headers): string | undefined {
  const hosts = headers.get('host')?.length ?? 0;
  if (hosts > 1) return badRequest;
  if (hosts === 0 && minor > 0) return `${badRequest}: missing required Host header`;
  if (headers.get('content-length')?.some((text) => !/^\d+$/.test(text))) return badRequest;
  const expect = headers.get('expect')?.[0]?.toLowerCase() ?? '';
  return expect === '' || expect === '100-continue' ? undefined : '417 Expectation Failed';
}

export function bodyLength({ headers }: RequestHead): number {
  return Number(headers.get('content-length')?.[0] ?? 0);
}

/** Whether the client wants to send more requests on this connection, and can. */
export function isKeptAlive(head: RequestHead): boolean {
  const { minor, headers } = head;
  const words = (headers.get('connection') ?? []).flatMap((text) => text.toLowerCase().split(/ *, */));
  const isWanted = minor > 0 ? !words.includes('close') : words.includes('keep-alive');
  const hasUnskippableBody =
    headers.has('transfer-encoding') || headers.has('expect') || bodyLength(head) > maxSkippedBytes;
  return isWanted && !hasUnskippableBody;
}
