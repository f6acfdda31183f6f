import type { HttpResponse } from './response.ts';

/** A request whose head has been read. */
export interface HttpRequest {
  readonly method: string;
  /** As the client sent it: path and query, perhaps with a host before. */
  readonly url: string;
  readonly remoteAddress: string | undefined;
  /** When it began to wait, by the monotonic clock: its head was there, and the requests before it were answered. */
  readonly waitsSince: number;
  /** Returns a field by its name in lower case; several values are joined by commas. */
  header(name: string): string | undefined;
  /** Resolves to the body, or to its beginning if it is long; rejects when the client goes before that. */
  body(): Promise<string>;
}

/** Answers a request, now or later. */
export type RequestListener = (request: HttpRequest, response: HttpResponse) => void;
