import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Clock } from '../lib/clock.ts';
import { http, reply } from '../lib/http.ts';
import { idleTimeoutMs, invalidRequestReply, maxHeadBytes } from '../lib/http-responder.ts';
import type { Logger } from '../obs/log.ts';

/** Path and query of a request. */
export interface Target {
  readonly path: string;
  readonly query: URLSearchParams;
}

/** Answers one request. If it throws, the client gets a 500. */
export type Handler = (
  request: IncomingMessage,
  response: ServerResponse,
  target: Target,
) => void | Promise<void>;

/** Handlers by exact path. A path that ends in `/*` matches everything below it. */
export type Routes = Readonly<Record<string, Handler>>;

/** Makes a request listener like Go's: exact paths, and `404 page not found` for everything else. */
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

/** Async, so that a handler's exception becomes a rejection. */
async function answer(handler: Handler, ...exchange: Parameters<Handler>): Promise<void> {
  await handler(...exchange);
}

/** Makes an HTTP server with timeouts against slow and silent clients. */
export function createHttpServer(listener: (q: IncomingMessage, r: ServerResponse) => void): Server {
  const server = http.createServer(
    {
      maxHeaderSize: maxHeadBytes,
      keepAliveTimeout: idleTimeoutMs,
      headersTimeout: 15_000,
      requestTimeout: 30_000,
    },
    listener,
  );
  server.on('clientError', replyToInvalid);
  return server;
}

/** Stops listening and closes connections: idle ones now, the others after their answer or the grace period. */
export function closeServer(server: Server, clock: Clock, graceMs = 1000): Promise<void> {
  // Node's close() closes idle connections.
  const closed = new Promise<void>((resolve) => server.close(() => resolve()));
  const force = clock.setTimeout(() => server.closeAllConnections(), graceMs);
  return closed.finally(() => force.cancel());
}

export const textHeaders = {
  'Content-Type': 'text/plain; charset=utf-8',
  'X-Content-Type-Options': 'nosniff',
} as const;

/** Replies with an error as Go does: plain text with a line end. */
export function replyError(response: ServerResponse, status: number, message: string): void {
  reply(response, status, textHeaders, `${message}\n`);
}

export const notFound: Handler = (_request, response) => replyError(response, 404, '404 page not found');

/** Returns undefined when the target is not a URL or has a broken escape. */
function parseTarget(url: string): Target | undefined {
  try {
    const at = url.indexOf('?');
    const text = at < 0 ? url : url.slice(0, at);
    // A proxy-style target also has a host; only its path counts.
    const path = text.startsWith('/') || text === '*' ? text : new URL(text).pathname;
    return { path: decodeURIComponent(path), query: new URLSearchParams(at < 0 ? '' : url.slice(at + 1)) };
  } catch {
    return undefined;
  }
}

/** Replies to bytes that are not an HTTP request. */
function replyToInvalid(error: NodeJS.ErrnoException, socket: Socket): void {
  if (error.code === 'ECONNRESET' || !socket.writable) {
    socket.destroy();
    return;
  }
  const tooLong = error.code === 'HPE_HEADER_OVERFLOW';
  const status = tooLong ? '431 Request Header Fields Too Large' : '400 Bad Request';
  socket.end(invalidRequestReply(status), () => socket.destroy());
}
