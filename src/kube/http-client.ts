import type { IncomingMessage } from 'node:http';
import type { Clock } from '../lib/clock.ts';
import { sleep } from '../lib/sleep.ts';
import type { Logger } from '../obs/log.ts';
import type { Labels } from '../obs/metrics.ts';
import { acceptHeader, type ContentTypes } from './accept.ts';
import { ApiError, apiErrorOf, TransportError, transportErrorOf } from './api-error.ts';
import type { ClusterAccess } from './cluster-access.ts';
import type { Credential } from './credentials.ts';
import { encodingOf } from './encodings.ts';
import { exchange, readBody, readBytes } from './http-exchange.ts';
import { jsonEncoding } from './json-encoding.ts';
import { jsonType } from './media-type.ts';
import { type RateLimiter, rateLimiterFor } from './rate-limiter.ts';
import type { AnswerBody, ApiRequest, ApiResponse, RestClient, StreamRequest } from './rest-client.ts';
import { type RestMetrics, silentRestMetrics } from './rest-metrics.ts';
import { TimeLimit } from './time-limit.ts';
import { Transport } from './transport.ts';

/** What can change while the client is in use. */
export interface ClientSettings {
  /** Requests per second; negative for no limit, zero for the default. */
  readonly qps: number;
  readonly burst: number;
  readonly contentTypes: ContentTypes;
}

export interface HttpClientOptions extends ClientSettings {
  readonly access: ClusterAccess;
  readonly userAgent: string;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics?: RestMetrics;
}

const defaultTimeoutMs = 30_000;
const maxBodyBytes = 16 * 1024 * 1024;
const maxErrorBytes = 64 * 1024;
/** How often one request is repeated on the server's `Retry-After`. */
const maxRetries = 10;

export interface HttpRestClient extends RestClient {
  /** Uses other settings from the next request on. Throws, and changes nothing, when QPS and burst contradict each other. */
  configure(settings: ClientSettings): void;
}

/** A client over HTTP/1.1. Throws when QPS and burst contradict each other. */
export function createRestClient(options: HttpClientOptions): HttpRestClient {
  return new HttpClient(options);
}

class HttpClient implements HttpRestClient {
  readonly #options: HttpClientOptions;
  #limiter: RateLimiter | undefined;
  readonly #transport: Transport;
  readonly #metrics: RestMetrics;
  /** The `host` label of metrics. */
  readonly #host: string;
  #headers: Readonly<Record<string, string | readonly string[]>> = {};
  #accept = jsonType;
  /** Paths that the server refused to serve in the configured content types. */
  readonly #jsonPaths = new Set<string>();
  readonly #closing = new AbortController();

  constructor(options: HttpClientOptions) {
    const { access, logger } = options;
    this.#options = options;
    this.#transport = new Transport(access, logger);
    this.#metrics = options.metrics ?? silentRestMetrics;
    this.#host = access.authority ?? access.server.host;
    this.configure(options);
  }

  configure({ qps, burst, contentTypes }: ClientSettings): void {
    const { access, userAgent, clock, logger } = this.#options;
    this.#limiter = rateLimiterFor(qps, burst, clock);
    const accept = acceptHeader(contentTypes);
    if (accept.unreadable.length > 0) {
      logger.info('Ignoring content types that cannot be read', { types: accept.unreadable.join(', ') });
    }
    this.#accept = accept.header;
    this.#jsonPaths.clear();
    this.#headers = {
      'accept-encoding': access.disableCompression ? 'identity' : 'gzip',
      'user-agent': userAgent,
      ...access.headers,
    };
  }

  async request(request: ApiRequest): Promise<ApiResponse> {
    for (let attempt = 0; ; attempt++) {
      try {
        return await this.#requestOnce(request);
      } catch (error) {
        const wait = error instanceof ApiError && isBusy(error.status) ? error.retryAfterSeconds : undefined;
        if (!(error instanceof ApiError) || wait === undefined || attempt >= maxRetries) throw error;
        this.#metrics.retries.inc({ ...this.#labels(request), code: String(error.status) });
        await sleep(this.#options.clock, wait * 1000, this.#signals(request));
      }
    }
  }

  async stream(request: StreamRequest): Promise<AnswerBody> {
    const { clock } = this.#options;
    if (!request.unthrottled) await this.#throttle(request);
    const limit = new TimeLimit(clock, request.timeoutMs ?? defaultTimeoutMs, [this.#signals(request)]);
    try {
      const answer = await this.#open(request, limit.signal, !request.unthrottled);
      const body = readBody(answer, { idleMs: request.idleMs, clock, signal: limit.signal });
      return Object.assign(body, { contentType: contentTypeOf(answer) });
    } finally {
      limit.lift();
    }
  }

  close(): void {
    this.#closing.abort(new TransportError('the client is closed'));
    this.#transport.close();
  }

  async #requestOnce(request: ApiRequest): Promise<ApiResponse> {
    const { clock } = this.#options;
    await this.#throttle(request);
    const timeoutMs = request.timeoutMs ?? defaultTimeoutMs;
    const limit = new TimeLimit(clock, timeoutMs, [this.#signals(request)]);
    try {
      const answer = await this.#open(request, limit.signal, true);
      const body = readBody(answer, { idleMs: () => timeoutMs, clock, signal: limit.signal });
      const bytes = await readBytes(body, maxBodyBytes);
      this.#metrics.responseSize.observe(bytes.length, this.#labels(request));
      const isJson = encodingOf(contentTypeOf(answer)) === jsonEncoding;
      return { status: answer.statusCode ?? 0, body: isJson ? parseJson(bytes.toString('utf8')) : undefined };
    } finally {
      limit.lift();
    }
  }

  /**
   * Sends a request; again with a new credential after a 401, and for JSON if the server has no other content type.
   * Rejects unless the status is 2xx.
   */
  async #open(request: ApiRequest, signal: AbortSignal, timed: boolean): Promise<IncomingMessage> {
    const { access, clock } = this.#options;
    const startedAt = clock.monotonic();
    let credential = await this.#credential();
    let answer = await this.#send(request, credential, signal);
    if (answer.statusCode === 401 && access.credentials.refused(credential)) {
      answer.destroy();
      credential = await this.#credential();
      answer = await this.#send(request, credential, signal);
    }
    if (this.#fallsBackToJson(request, answer.statusCode)) {
      answer.destroy();
      answer = await this.#send(request, credential, signal);
    }
    if (timed) this.#metrics.duration.observe((clock.monotonic() - startedAt) / 1000, this.#labels(request));
    const status = answer.statusCode ?? 0;
    if (status >= 200 && status < 300) return answer;
    const body = readBody(answer, { idleMs: () => defaultTimeoutMs, clock, signal });
    const refusal = encodingOf(contentTypeOf(answer)).refusal(await readBytes(body, maxErrorBytes));
    throw apiErrorOf(status, refusal, retryAfterOf(answer));
  }

  /** Whether to repeat a request for JSON. That is remembered, so that later requests ask for JSON at once. */
  #fallsBackToJson(request: ApiRequest, status: number | undefined): boolean {
    if ((status !== 406 && status !== 415) || this.#acceptFor(request) === jsonType) return false;
    this.#jsonPaths.add(request.path);
    const { path } = request;
    this.#options.logger.info('The API server refused the content type; using JSON', { path, status });
    return true;
  }

  /** Of the answer to a write only the status is in use. */
  #acceptFor({ method, path }: ApiRequest): string {
    return method !== 'GET' || this.#jsonPaths.has(path) ? jsonType : this.#accept;
  }

  async #send(request: ApiRequest, credential: Credential, signal: AbortSignal): Promise<IncomingMessage> {
    const { access, clock, logger } = this.#options;
    const { method } = request;
    const body = request.body === undefined ? undefined : Buffer.from(JSON.stringify(request.body));
    if (body !== undefined) this.#metrics.requestSize.observe(body.length, this.#labels(request));
    const startedAt = clock.monotonic();
    let code = '<error>';
    try {
      const agent = await this.#transport.agentFor(credential);
      const headers = this.#headersFor(request, credential, body);
      const answer = await exchange({
        url: urlFor(access.server, request),
        method,
        headers,
        body,
        agent,
        signal,
      });
      code = String(answer.statusCode);
      return answer;
    } catch (error) {
      throw transportErrorOf(error, signal);
    } finally {
      this.#metrics.requests.inc({ code, method, host: this.#host });
      const log = logger.v(6);
      const ms = Math.round(clock.monotonic() - startedAt);
      if (log.enabled)
        log.info('Response', { verb: method, path: request.path, status: code, milliseconds: ms });
    }
  }

  #headersFor(
    request: ApiRequest,
    { token }: Credential,
    body: Buffer | undefined,
  ): Record<string, string | string[]> {
    const headers: Record<string, string | string[]> = { accept: this.#acceptFor(request) };
    for (const [name, value] of Object.entries(this.#headers)) {
      headers[name] = typeof value === 'string' ? value : [...value];
    }
    if (token !== undefined) headers.authorization = `Bearer ${token}`;
    if (body !== undefined) {
      headers['content-type'] = jsonType;
      headers['content-length'] = String(body.length);
    }
    for (const [name, value] of Object.entries(request.headers ?? {})) headers[name.toLowerCase()] = value;
    return headers;
  }

  async #credential(): Promise<Credential> {
    try {
      return await this.#options.access.credentials.current();
    } catch (error) {
      throw transportErrorOf(error);
    }
  }

  async #throttle(request: ApiRequest): Promise<void> {
    if (this.#limiter === undefined) return;
    const waitedMs = await this.#limiter.take(this.#signals(request));
    this.#metrics.rateLimiterDuration.observe(waitedMs / 1000, this.#labels(request));
  }

  #signals({ signal }: ApiRequest): AbortSignal {
    return signal === undefined ? this.#closing.signal : AbortSignal.any([this.#closing.signal, signal]);
  }

  #labels({ method }: ApiRequest): Labels {
    return { verb: method, host: this.#host };
  }
}

function isBusy(status: number): boolean {
  return status === 429 || status >= 500;
}

function urlFor(server: URL, { path, query }: ApiRequest): URL {
  const url = new URL(server);
  url.pathname = server.pathname.replace(/\/+$/, '') + path;
  url.search = query === undefined ? '' : new URLSearchParams(query).toString();
  return url;
}

function contentTypeOf(answer: IncomingMessage): string {
  return answer.headers['content-type'] ?? '';
}

function retryAfterOf(answer: IncomingMessage): number | undefined {
  const seconds = Number.parseInt(answer.headers['retry-after'] ?? '', 10);
  return seconds >= 0 ? seconds : undefined;
}

function parseJson(text: string): unknown {
  if (text.trim() === '') return undefined;
  try {
    return JSON.parse(text);
  } catch {
    throw new TransportError(`the answer is not JSON: ${JSON.stringify(text.slice(0, 60))}`);
  }
}
