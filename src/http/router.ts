import { type Replier, reply } from '../lib/http.ts';
import type { Logger } from '../obs/log.ts';
import type { HttpRequest, RequestListener } from './exchange.ts';
import type { HttpResponse } from './response.ts';

/** Path and query of a request. */
export class Target {
  readonly path: string;
  readonly #query: string;

  /** Throws when the target is not a URL or has a broken escape. */
  constructor(url: string) {
    const at = url.indexOf('?');
    const text = at < 0 ? url : url.slice(0, at);
    // A proxy-style target also has a host; only its path counts.
    const path = text.startsWith('/') || text === '*' ? text : new URL(text).pathname;
    this.path = decodeURIComponent(path);
    this.#query = at < 0 ? '' : url.slice(at + 1);
  }

  get query(): URLSearchParams {
    return new URLSearchParams(this.#query);
  }
}

/** Answers one request. If it throws, the client gets a 500. */
export type Handler = (request: HttpRequest, response: HttpResponse, target: Target) => void | Promise<void>;

/** Handlers by exact path. A path that ends in `/*` matches everything below it. */
export type Routes = Readonly<Record<string, Handler>>;

/** Makes a request listener like Go's: exact paths, and `404 page not found` for everything else. */
export function createRouter(routes: Routes, logger: Logger): RequestListener {
  const exact = new Map(Object.entries(routes).filter(([path]) => !path.endsWith('/*')));
  const prefixes = Object.entries(routes)
    .filter(([path]) => path.endsWith('/*'))
    .map(([path, handler]) => ({ prefix: path.slice(0, -1), handler }));
  const find = (path: string) =>
    exact.get(path) ?? prefixes.find(({ prefix }) => path.startsWith(prefix))?.handler;
  return (request, response) => {
    const target = parseTarget(request.url);
    if (!target) return replyError(response, 400, '400 Bad Request');
    const handler = find(target.path) ?? notFound;
    const fail = (error: unknown) => {
      logger.error(error, 'Request failed', { path: target.path });
      if (response.headersSent) response.destroy();
      else replyError(response, 500, 'Internal Server Error');
    };
    try {
      handler(request, response, target)?.catch(fail);
    } catch (error) {
      fail(error);
    }
  };
}

export const textHeaders = {
  'Content-Type': 'text/plain; charset=utf-8',
  'X-Content-Type-Options': 'nosniff',
} as const;

/** Replies with an error as Go does: plain text with a line end. */
export function replyError(response: Replier, status: number, message: string): void {
  reply(response, status, textHeaders, `${message}\n`);
}

export const notFound: Handler = (_request, response) => replyError(response, 404, '404 page not found');

/** Returns undefined when the target is not valid. */
function parseTarget(url: string): Target | undefined {
  try {
    return new Target(url);
  } catch {
    return undefined;
  }
}
