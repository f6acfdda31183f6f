import type { IncomingMessage, ServerResponse } from 'node:http';
import { TLSSocket } from 'node:tls';
import type { TypedObject } from './encoding.ts';
import type { Fault, FaultPlan } from './faults.ts';
import { mergePatch, readObject } from './json.ts';
import { Lister } from './list.ts';
import type { ProtobufSupport } from './negotiation.ts';
import { gzipAboveBytes, Reply } from './reply.ts';
import { type Location, locate, resources, type ServedResource } from './resources.ts';
import { fieldSelector, labelSelector, type Selector, SelectorError } from './selectors.ts';
import { ApiFault } from './status.ts';
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
  /** Whether the connection goes on with the TLS session of an earlier one. */
  readonly resumesSession: boolean;
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
  readonly gzipAbove?: number;
  readonly protobuf?: ProtobufSupport;
}

/** Answers requests. */
export class ApiHandler {
  readonly requests: RecordedRequest[] = [];
  protobuf: ProtobufSupport;
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
    this.protobuf = options.protobuf ?? 'served';
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
      resumesSession: request.socket instanceof TLSSocket && request.socket.isSessionReused(),
    });
    const fault = this.#faults.take(target);
    const reply = new Reply(response, fault, this.#options.gzipAbove ?? gzipAboveBytes);
    this.#answer(request, reply, url, fault).catch((error: unknown) => {
      if (response.headersSent) response.destroy();
      else reply.status(faultOf(error));
    });
  }

  async #answer(request: IncomingMessage, reply: Reply, url: URL, fault: Fault | undefined): Promise<void> {
    reply.negotiate(request, this.protobuf);
    if (fault !== undefined && isTotal(fault)) return failTotally(reply, fault);
    if (!this.#isAllowed(request)) throw new ApiFault(401, 'Unauthorized', 'Unauthorized');
    const location = locate(url.pathname);
    if (location === undefined)
      throw new ApiFault(404, 'NotFound', 'the server could not find the requested resource');
    if (request.method === 'POST') return this.#create(reply, location, await readObject(request));
    if (request.method === 'PATCH') return this.#patch(reply, location, await readObject(request));
    if (request.method !== 'GET')
      throw new ApiFault(405, 'MethodNotAllowed', 'the server does not allow this method');
    if (location.name !== '') return this.#get(reply, location);
    const matches = selectorOf(url.searchParams, location.namespace);
    if (['true', '1'].includes(url.searchParams.get('watch') ?? '')) {
      return this.#watch(reply, location.resource, url.searchParams, matches);
    }
    const list = { location, matches, query: url.searchParams };
    reply.list(this.#lister.list(list, reply.encoding));
  }

  #get(reply: Reply, { resource, namespace, name }: Location): void {
    const found = this.#store.get(resource, keyOf(namespace, name));
    if (found === undefined) throw notFound(name);
    reply.object(200, withKind(resource, found.raw));
  }

  #create(reply: Reply, { resource, namespace }: Location, object: RawObject): void {
    const { name } = object.metadata;
    if (this.#store.get(resource, keyOf(namespace, name)) !== undefined) {
      throw new ApiFault(409, 'AlreadyExists', `"${name}" already exists`);
    }
    const metadata = namespace === '' ? object.metadata : { ...object.metadata, namespace };
    const stored = this.#store.put(resource, { ...object, metadata });
    reply.object(201, withKind(resource, stored.raw));
  }

  #patch(reply: Reply, { resource, namespace, name }: Location, patch: RawObject): void {
    const found = this.#store.get(resource, keyOf(namespace, name));
    if (found === undefined) throw notFound(name);
    const merged = mergePatch(found.raw, patch) as RawObject;
    const stored = this.#store.put(resource, { ...merged, metadata: { ...merged.metadata, name } });
    reply.object(200, withKind(resource, stored.raw));
  }

  #watch(reply: Reply, resource: ServedResource, query: URLSearchParams, matches: Selector): void {
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
    const watch = new Watch(this.#store, reply.stream(wantsInitial), {
      resource,
      encoding: reply.encoding,
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

function failTotally(reply: Reply, fault: TotalFault): void {
  if (fault.kind === 'reset') reply.cut();
  if (fault.kind === 'garbage') reply.bytes(200, Buffer.from('160301007bfffe', 'hex'));
  if (fault.kind !== 'status') return;
  const { status, reason = '', message = `injected ${status}`, retryAfter } = fault;
  reply.status(new ApiFault(status, reason, message), retryAfter);
}

function faultOf(error: unknown): ApiFault {
  if (error instanceof ApiFault) return error;
  if (error instanceof SelectorError) return new ApiFault(400, 'BadRequest', error.message);
  return new ApiFault(500, 'InternalError', String(error));
}

function notFound(name: string): ApiFault {
  return new ApiFault(404, 'NotFound', `"${name}" not found`);
}

function withKind(resource: ServedResource, raw: RawObject): TypedObject {
  const { kind, apiVersion } = resources[resource];
  return { kind, apiVersion, ...raw };
}
