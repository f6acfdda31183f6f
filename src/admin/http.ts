import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Clock } from '../lib/clock.ts';
import { http } from '../lib/http.ts';
import type { Logger } from '../obs/log.ts';

/** The part of a request target that handlers look at. */
export interface Target {
  readonly path: string;
  readonly query: URLSearchParams;
}

/** Answers one request; what it throws becomes a 500. */
export type Handler = (
  request: IncomingMessage,
  response: ServerResponse,
  target: Target,
) => void | Promise<void>;

/** Handlers by exact path. A path that ends in `/*` takes everything below it. */
export type Routes = Readonly<Record<string, Handler>>;

/** Bytes of request head that are read before the connection is refused with 431. */
const maxHeaderSize = 64 * 1024;
/** Longer than the usual scrape interval, so that a scraper keeps its connection. */
const keepAliveTimeout = 150_000;

/** A request listener with the manners of Go's: exact paths, and everything else is `404 page not found`. */
export function createRouter(
  routes: Routes,
  logger: Logger,
): (q: IncomingMessage, r: ServerResponse) => void {
  const exact = new Map(Object.entries(routes).filter(([path]) => !path.endsWith('/*')));
  const prefixes = Object.entries(routes)
    .filter(([path]) => path.endsWith('/*'))
    .map(([path, handler]) => ({ prefix: path.slice(0, -1), handler }));
  const find = (path: string) =>
    exact.get(path) ?? prefixes.find(({ prefix }) => path.startsWith(prefix))?.handler;
  return (request, response) => {
    const target = parseTarget(request.url ?? '');
    if (!target) return replyError(response, 400, '400 Bad Request');
    const handler = find(target.path) ?? notFound;
    answer(handler, request, response, target).catch((error: unknown) => {
      logger.error(error, 'Request failed', { path: target.path });
      if (response.headersSent) response.destroy();
      else replyError(response, 500, 'Internal Server Error');
    });
  };
}

/** Turns a handler's exception into a rejection. */
async function answer(handler: Handler, ...exchange: Parameters<Handler>): Promise<void> {
  await handler(...exchange);
}

/** An HTTP server that no slow or silent client can hold on to. */
export function createHttpServer(listener: (q: IncomingMessage, r: ServerResponse) => void): Server {
  const server = http.createServer(
    { maxHeaderSize, keepAliveTimeout, headersTimeout: 15_000, requestTimeout: 30_000 },
    listener,
  );
  server.on('clientError', refuse);
  return server;
}

/** Stops listening and ends connections: idle ones now, the others after their answer or the grace period. */
export function closeServer(server: Server, clock: Clock, graceMs = 1000): Promise<void> {
  // Node's close ends idle connections by itself.
  const closed = new Promise<void>((resolve) => server.close(() => resolve()));
  const force = clock.setTimeout(() => server.closeAllConnections(), graceMs);
  return closed.finally(() => force.cancel());
}

/** A whole answer of known length, optionally with more headers. */
export function reply(
  response: ServerResponse,
  status: number,
  headers: Readonly<Record<string, string>>,
  body: string | Uint8Array,
): void {
  response.writeHead(status, { ...headers, 'Content-Length': Buffer.byteLength(body) }).end(body);
}

export const textHeaders = {
  'Content-Type': 'text/plain; charset=utf-8',
  'X-Content-Type-Options': 'nosniff',
} as const;

/** An error in Go's form: plain text with a line end. */
export function replyError(response: ServerResponse, status: number, message: string): void {
  reply(response, status, textHeaders, `${message}\n`);
}

export const notFound: Handler = (_request, response) => replyError(response, 404, '404 page not found');

/** Undefined when the target is not a URL or has a broken escape. */
function parseTarget(url: string): Target | undefined {
  try {
    const at = url.indexOf('?');
    const text = at < 0 ? url : url.slice(0, at);
    // A proxy-style target names the host as well; only its path counts.
    const path = text.startsWith('/') || text === '*' ? text : new URL(text).pathname;
    return { path: decodeURIComponent(path), query: new URLSearchParams(at < 0 ? '' : url.slice(at + 1)) };
  } catch {
    return undefined;
  }
}

/** Answers what could not be parsed as a request. */
function refuse(error: NodeJS.ErrnoException, socket: Socket): void {
  if (error.code === 'ECONNRESET' || !socket.writable) {
    socket.destroy();
    return;
  }
  const tooLong = error.code === 'HPE_HEADER_OVERFLOW';
  const status = tooLong ? '431 Request Header Fields Too Large' : '400 Bad Request';
  const head = `HTTP/1.1 ${status}\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close`;
  socket.end(`${head}\r\n\r\n${status}`, () => socket.destroy());
}
