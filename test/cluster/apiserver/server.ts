import http from 'node:http';
import https from 'node:https';
import type { AddressInfo } from 'node:net';
import { TLSSocket } from 'node:tls';
import type { KeyPair } from './certificates.ts';
import { FaultPlan } from './faults.ts';
import { ApiHandler, type RecordedRequest, type StreamingLists } from './handler.ts';
import type { ProtobufSupport } from './negotiation.ts';
import type { ServedResource } from './resources.ts';
import { type RawObject, Store } from './store.ts';
import type { Watch } from './watch.ts';

export interface ApiServerOptions {
  /** Serve TLS with this certificate; without it, plain HTTP. */
  readonly tls?: KeyPair;
  /** Client certificates signed by this authority are accepted. */
  readonly clientCa?: string;
  /** Bearer tokens that are accepted. With neither this nor `clientCa`, every client is accepted. */
  readonly tokens?: Set<string>;
  readonly streamingLists?: StreamingLists;
  readonly bookmarkMs?: number;
  /** How the server reports an expired version to a new watch. */
  readonly reportsExpiry?: 'status' | 'event';
  /** Lists of more bytes are compressed if the client asks for that; without it, as in the real server. */
  readonly gzipAbove?: number;
  readonly protobuf?: ProtobufSupport;
  readonly host?: string;
}

/** A test API server: the parts of the Kubernetes API that kube-proxy uses, and faults on demand. */
export interface ApiServer {
  readonly url: string;
  readonly faults: FaultPlan;
  /** Every request so far. */
  readonly requests: readonly RecordedRequest[];
  readonly store: Store;
  put(resource: ServedResource, object: RawObject): void;
  delete(resource: ServedResource, namespace: string, name: string): boolean;
  /** The open watches. */
  watches(resource?: ServedResource): Watch[];
  /** Treats requests for protobuf like this from now on. */
  setProtobuf(support: ProtobufSupport): void;
  /** Cuts all connections at once. */
  disconnect(): void;
  /** Presents this certificate to new connections. */
  useCertificate(pair: KeyPair): void;
  close(): Promise<void>;
}

export async function startApiServer(options: ApiServerOptions = {}): Promise<ApiServer> {
  const store = new Store();
  const faults = new FaultPlan();
  const handler = new ApiHandler(store, faults, options, (socket) => isAllowed(socket, options));
  const listen: http.RequestListener = (request, response) => handler.handle(request, response);
  const server =
    options.tls === undefined ? http.createServer(listen) : tlsServer(options.tls, options, listen);
  const host = options.host ?? '127.0.0.1';
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(0, host, resolve);
  });
  const { port } = server.address() as AddressInfo;
  return {
    url: `${options.tls === undefined ? 'http' : 'https'}://${host.includes(':') ? `[${host}]` : host}:${port}`,
    faults,
    requests: handler.requests,
    store,
    put: (resource, object) => void store.put(resource, object),
    delete: (resource, namespace, name) => store.delete(resource, namespace, name),
    watches: (resource) => handler.watches(resource),
    setProtobuf: (support) => {
      handler.protobuf = support;
    },
    disconnect: () => server.closeAllConnections(),
    useCertificate: ({ cert, key }) => {
      if (server instanceof https.Server) server.setSecureContext({ cert, key, ...trusting(options) });
    },
    close: () =>
      new Promise((resolve) => {
        for (const watch of handler.watches()) watch.drop();
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

function tlsServer(pair: KeyPair, options: ApiServerOptions, listen: http.RequestListener): https.Server {
  return https.createServer(
    { ...pair, ...trusting(options), requestCert: true, rejectUnauthorized: false },
    listen,
  );
}

function trusting({ clientCa }: ApiServerOptions): { ca?: string } {
  return clientCa === undefined ? {} : { ca: clientCa };
}

function isAllowed(request: http.IncomingMessage, { clientCa, tokens }: ApiServerOptions): boolean {
  if (clientCa === undefined && tokens === undefined) return true;
  const [, token] = /^Bearer (.+)$/.exec(request.headers.authorization ?? '') ?? [];
  if (token !== undefined && tokens?.has(token)) return true;
  return clientCa !== undefined && request.socket instanceof TLSSocket && request.socket.authorized;
}
