import type { IncomingMessage, ServerResponse } from 'node:http';
import { TLSSocket } from 'node:tls';
import { gzipSync } from 'node:zlib';
import { type Fault, type FaultPlan, outletFor } from './faults.ts';
import { mergePatch, readObject, sendJson } from './json.ts';
import { Lister, type ListOptions } from './list.ts';
import { type Location, locate, resources, type ServedResource } from './resources.ts';
import { fieldSelector, labelSelector, type Selector, SelectorError } from './selectors.ts';
import { ApiFault, statusOf } from './status.ts';
import { keyOf, type RawObject, type Store } from './store.ts';
import { Watch } from './watch.ts';

export interface RecordedRequest {
  readonly method: string;
  readonly path: string;
  readonly query: URLSearchParams;
  readonly headers: IncomingMessage['headers'];
  /** Common name of the client certificate; empty without one. */
  readonly certificate: string;
  /** The client's port, which identifies the connection. */
  readonly port: number | undefined;
}

/**
 * How the server treats `sendInitialEvents`. `ignored` is a server that does not know it. `broken` is a server whose etcd
 * reports no progress: it accepts the request and then sends an error.
 */
export type StreamingLists = 'supported' | 'refused' | 'ignored' | 'broken';

export interface HandlerOptions {
  readonly streamingLists?: StreamingLists;
  readonly bookmarkMs?: number;
  readonly reportsExpiry?: 'status' | 'event';
  readonly gzip?: boolean;
}

/** Answers requests. */
export class ApiHandler {
  readonly requests: RecordedRequest[] = [];
  readonly #store: Store;
  readonly #faults: FaultPlan;
  readonly #options: HandlerOptions;
  readonly #isAllowed: (request: IncomingMessage) => boolean;
  readonly #lister: Lister;
  #watches: Watch[] = [];

  constructor(
    store: Store,
    faults: FaultPlan,
    options: HandlerOptions,
    isAllowed: (request: IncomingMessage) => boolean,
  ) {
    this.#store = store;
    this.#faults = faults;
    this.#options = options;
    this.#isAllowed = isAllowed;
    this.#lister = new Lister(store);
  }

  watches(resource?: ServedResource): Watch[] {
    this.#watches = this.#watches.filter((watch) => !watch.closed);
    return this.#watches.filter((watch) => resource === undefined || watch.resource === resource);
  }

  handle(request: IncomingMessage, response: ServerResponse): void {
    const url = new URL(request.url ?? '/', 'http://server');
    const target = { method: request.method ?? '', path: url.pathname, query: url.searchParams };
    this.requests.push({
      ...target,
      headers: request.headers,
      certificate: certificateName(request),
      port: request.socket.remotePort,
    });
    const fault = this.#faults.take(target);
    this.#answer(request, response, url, fault).catch((error: unknown) => {
      if (response.headersSent) response.destroy();
      else if (error instanceof ApiFault) sendJson(response, error.code, statusOf(error));
      else if (error instanceof SelectorError)
        sendJson(response, 400, statusOf(new ApiFault(400, 'BadRequest', error.message)));
      else sendJson(response, 500, statusOf(new ApiFault(500, 'InternalError', String(error))));
    });
  }

  async #answer(
    request: IncomingMessage,
    response: ServerResponse,
    url: URL,
    fault: Fault | undefined,
  ): Promise<void> {
    if (fault !== undefined && isTotal(fault)) return failTotally(response, fault);
    if (!this.#isAllowed(request)) throw new ApiFault(401, 'Unauthorized', 'Unauthorized');
    const location = locate(url.pathname);
    if (location === undefined)
      throw new ApiFault(404, 'NotFound', 'the server could not find the requested resource');
    if (request.method === 'POST') return this.#create(response, location, await readObject(request));
    if (request.method === 'PATCH') return this.#patch(response, location, await readObject(request));
    if (request.method !== 'GET')
      throw new ApiFault(405, 'MethodNotAllowed', 'the server does not allow this method');
    if (location.name !== '') return this.#get(response, location);
    const matches = selectorOf(url.searchParams, location.namespace);
    if (['true', '1'].includes(url.searchParams.get('watch') ?? '')) {
      return this.#watch(response, location.resource, url.searchParams, matches, fault);
    }
    return this.#list(request, response, { location, matches, query: url.searchParams }, fault);
  }

  #get(response: ServerResponse, { resource, namespace, name }: Location): void {
    const found = this.#store.get(resource, keyOf(namespace, name));
    if (found === undefined) throw notFound(name);
    sendJson(response, 200, withKind(resource, found.raw));
  }

  #create(response: ServerResponse, { resource, namespace }: Location, object: RawObject): void {
    const { name } = object.metadata;
    if (this.#store.get(resource, keyOf(namespace, name)) !== undefined) {
      throw new ApiFault(409, 'AlreadyExists', `"${name}" already exists`);
    }
    const metadata = namespace === '' ? object.metadata : { ...object.metadata, namespace };
    const stored = this.#store.put(resource, { ...object, metadata });
    sendJson(response, 201, withKind(resource, stored.raw));
  }

  #patch(response: ServerResponse, { resource, namespace, name }: Location, patch: RawObject): void {
    const found = this.#store.get(resource, keyOf(namespace, name));
    if (found === undefined) throw notFound(name);
    const merged = mergePatch(found.raw, patch) as RawObject;
    const stored = this.#store.put(resource, { ...merged, metadata: { ...merged.metadata, name } });
    sendJson(response, 200, withKind(resource, stored.raw));
  }

  #list(
    request: IncomingMessage,
    response: ServerResponse,
    options: ListOptions,
    fault: Fault | undefined,
  ): void {
    const pieces = this.#lister.list(options);
    const wantsGzip = /\bgzip\b/.test(String(request.headers['accept-encoding'] ?? ''));
    if (this.#options.gzip && wantsGzip && fault === undefined) {
      response.writeHead(200, { 'content-type': 'application/json', 'content-encoding': 'gzip' });
      response.end(gzipSync(pieces.join(''), { level: 1 }));
      return;
    }
    response.writeHead(200, { 'content-type': 'application/json' });
    const outlet = outletFor(response, fault);
    for (const piece of pieces) outlet.write(piece);
    outlet.end();
  }

  #watch(
    response: ServerResponse,
    resource: ServedResource,
    query: URLSearchParams,
    matches: Selector,
    fault: Fault | undefined,
  ): void {
    const { streamingLists = 'supported', bookmarkMs = 60_000, reportsExpiry = 'status' } = this.#options;
    const wantsInitial = query.get('sendInitialEvents') === 'true' && streamingLists !== 'ignored';
    if (wantsInitial && streamingLists === 'refused') {
      throw new ApiFault(
        422,
        'Invalid',
        'sendInitialEvents: Forbidden: sendInitialEvents is forbidden for watch',
      );
    }
    if (wantsInitial && query.get('resourceVersionMatch') !== 'NotOlderThan') {
      throw new ApiFault(422, 'Invalid', 'resourceVersionMatch: Forbidden');
    }
    const version = query.get('resourceVersion') ?? '';
    const since = wantsInitial || version === '' || version === '0' ? undefined : Number(version);
    const expired = since !== undefined && since < this.#store.compactedAt;
    const message = `too old resource version: ${since} (${this.#store.compactedAt})`;
    if (expired && reportsExpiry === 'status') throw new ApiFault(410, 'Expired', message);
    response.writeHead(200, { 'content-type': 'application/json' });
    response.flushHeaders();
    const watch = new Watch(this.#store, outletFor(response, fault), {
      resource,
      matches,
      since,
      marksInitialEvents: wantsInitial,
      timeoutMs: Number(query.get('timeoutSeconds') ?? '1800') * 1000,
      bookmarkMs: query.get('allowWatchBookmarks') === 'true' ? bookmarkMs : undefined,
    });
    if (expired) {
      watch.error(410, 'Expired', message);
      return;
    }
    if (wantsInitial && streamingLists === 'broken') {
      watch.error(500, 'InternalError', 'Internal error occurred: RequestWatchProgress is disabled');
      return;
    }
    this.#watches.push(watch);
    watch.start();
  }
}

function certificateName({ socket }: IncomingMessage): string {
  if (!(socket instanceof TLSSocket) || !socket.authorized) return '';
  return String(socket.getPeerCertificate().subject?.CN ?? '');
}

function selectorOf(query: URLSearchParams, namespace: string): Selector {
  const labels = labelSelector(query.get('labelSelector') ?? '');
  const fields = fieldSelector(query.get('fieldSelector') ?? '');
  const inNamespace = ({ metadata }: RawObject) => namespace === '' || metadata.namespace === namespace;
  return (object) => inNamespace(object) && labels(object) && fields(object);
}

type TotalFault = Extract<Fault, { kind: 'status' | 'reset' | 'hang' | 'garbage' }>;

function isTotal(fault: Fault): fault is TotalFault {
  return ['status', 'reset', 'hang', 'garbage'].includes(fault.kind);
}

function failTotally(response: ServerResponse, fault: TotalFault): void {
  if (fault.kind === 'hang') return;
  if (fault.kind === 'reset') return void response.destroy();
  if (fault.kind === 'garbage') {
    response.writeHead(200, { 'content-type': 'application/json' });
    return void response.end(Buffer.from([0x16, 0x03, 0x01, 0x00, 0x7b, 0xff, 0xfe]));
  }
  const { status, reason = '', message = `injected ${status}`, retryAfter } = fault;
  if (retryAfter !== undefined) response.setHeader('retry-after', String(retryAfter));
  sendJson(response, status, statusOf(new ApiFault(status, reason, message)));
}

function notFound(name: string): ApiFault {
  return new ApiFault(404, 'NotFound', `"${name}" not found`);
}

function withKind(resource: ServedResource, raw: RawObject): RawObject {
  const { kind, apiVersion } = resources[resource];
  return { kind, apiVersion, ...raw };
}
