import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isDeepStrictEqual } from 'node:util';
import type { ContentTypes } from '../../src/kube/accept.ts';
import type { ClusterAccess } from '../../src/kube/cluster-access.ts';
import { fixedCredentials } from '../../src/kube/credentials.ts';
import { decoders } from '../../src/kube/decode.ts';
import { createRestClient, type HttpClientOptions } from '../../src/kube/http-client.ts';
import type { ReflectorTuning } from '../../src/kube/reflector.ts';
import type { RestClient } from '../../src/kube/rest-client.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { createIntern } from '../../src/lib/intern.ts';
import type { ResourceName, Resources } from '../../src/model/objects.ts';
import { kubeSource } from '../../src/sources/kube.ts';
import type { ObjectHandler, ObjectSource } from '../../src/sources/source.ts';
import { type ApiServer, type ApiServerOptions, startApiServer } from '../cluster/apiserver/server.ts';
import { eventually } from '../eventually.ts';
import { LogRecorder } from '../log-recorder.ts';

/** Real waits, a hundred times shorter than in production. */
export const fastTuning: Partial<ReflectorTuning> = {
  backoff: { initialMs: 1, maxMs: 8, jitter: 1 },
  watchSeconds: [5, 10],
  idleMs: 150,
  firstList: { answerMs: 30_000, idleMs: 100 },
  laterList: { answerMs: 30_000, idleMs: 150 },
  streamingPause: { initialMs: 5, maxMs: 40, jitter: 1 },
};

const unhurriedList = { answerMs: 60_000, idleMs: 60_000 };

/** Long idle times, so that nothing is asked for again because of silence. */
export const unhurriedTuning: Partial<ReflectorTuning> = {
  ...fastTuning,
  watchSeconds: [600, 600],
  idleMs: 60_000,
  firstList: unhurriedList,
  laterList: unhurriedList,
};

type AnyObject = Resources[ResourceName];

export function objectKey(object: AnyObject): string {
  return 'namespace' in object ? `${object.namespace}/${object.name}` : object.name;
}

/** A copy of the cluster built from deliveries alone; checks that each delivery fits the one before. */
export class Mirror implements ObjectHandler {
  readonly state = new Map<ResourceName, Map<string, AnyObject>>();
  readonly syncedResources: ResourceName[] = [];
  upserts = 0;
  removals = 0;

  of(resource: ResourceName): Map<string, AnyObject> {
    const known = this.state.get(resource) ?? new Map<string, AnyObject>();
    this.state.set(resource, known);
    return known;
  }

  upsert<R extends ResourceName>(
    resource: R,
    object: Resources[R],
    previous: Resources[R] | undefined,
  ): void {
    this.upserts++;
    assert.equal(
      this.of(resource).get(objectKey(object)),
      previous,
      'previous is the object delivered before',
    );
    this.of(resource).set(objectKey(object), object);
  }

  remove<R extends ResourceName>(resource: R, object: Resources[R]): void {
    this.removals++;
    assert.equal(this.of(resource).get(objectKey(object)), object, 'a removal carries the last known object');
    this.of(resource).delete(objectKey(object));
  }

  synced(resource: ResourceName): void {
    assert.ok(!this.syncedResources.includes(resource), `${resource} synced once`);
    this.syncedResources.push(resource);
  }
}

const selects: { readonly [R in ResourceName]: (raw: Record<string, unknown>) => boolean } = {
  services: (raw) =>
    !hasLabel(raw, 'service.kubernetes.io/service-proxy-name') && clusterIPOf(raw) !== 'None',
  endpointSlices: (raw) => !hasLabel(raw, 'service.kubernetes.io/headless'),
  nodes: () => true,
  serviceCIDRs: () => true,
};

function hasLabel(raw: Record<string, unknown>, label: string): boolean {
  const { labels = {} } = raw.metadata as { labels?: Record<string, string> };
  return label in labels;
}

function clusterIPOf(raw: Record<string, unknown>): unknown {
  return (raw.spec as { clusterIP?: string } | undefined)?.clusterIP;
}

/** The objects of a resource that a client should have, from the server's store. */
export function expectedState(
  server: ApiServer,
  resource: ResourceName,
  nodeName: string,
): Map<string, AnyObject> {
  const intern = createIntern();
  const wanted = server.store
    .list(resource)
    .filter(({ raw }) => selects[resource](raw) && (resource !== 'nodes' || raw.metadata.name === nodeName));
  return new Map(wanted.map(({ key, raw }) => [key, decoders[resource](raw, intern)]));
}

export const testNode = 'node-a';
const allResources: readonly ResourceName[] = ['services', 'endpointSlices', 'nodes', 'serviceCIDRs'];

export interface TestBed {
  readonly server: ApiServer;
  readonly client: RestClient;
  readonly source: ObjectSource;
  readonly mirror: Mirror;
  readonly log: LogRecorder;
  /** Waits until the mirror shows what the server holds; fails when it does not within the time. */
  converge(resources?: readonly ResourceName[]): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

export const encodings = ['json', 'protobuf'] as const;
export type Encoding = (typeof encodings)[number];

export const contentTypes: Readonly<Record<Encoding, ContentTypes>> = {
  json: { accept: '', contentType: 'application/json' },
  protobuf: { accept: '', contentType: 'application/vnd.kubernetes.protobuf' },
};

export const listKinds = ['streamed', 'pages'] as const;
type ListKind = (typeof listKinds)[number];

export type StartTestBed = (options?: TestBedOptions) => Promise<TestBed>;

/** Declares a test for each encoding of the API. */
export function testBoth(
  name: string,
  run: (testBed: StartTestBed, encoding: Encoding) => Promise<void>,
): void {
  for (const encoding of encodings) {
    test(`${name} (${encoding})`, () => run((options) => testBed({ ...options, encoding }), encoding));
  }
}

export interface TestBedOptions {
  /** What the client asks for. Default `protobuf`. */
  readonly encoding?: Encoding;
  readonly server?: ApiServerOptions;
  readonly client?: Partial<HttpClientOptions>;
  readonly tuning?: Partial<ReflectorTuning>;
  /** How the client asks for lists. Default `streamed`. */
  readonly lists?: ListKind;
  readonly random?: () => number;
  /** Fills the server before the first watch. */
  readonly seed?: (server: ApiServer) => void;
  readonly watch?: readonly ResourceName[];
}

/** A server, a client and a source that mirrors the one through the other. */
export async function testBed(options: TestBedOptions = {}): Promise<TestBed> {
  const server = await startApiServer(options.server);
  options.seed?.(server);
  const log = new LogRecorder();
  const client = createRestClient({
    ...clientDefaults(server.url),
    contentTypes: contentTypes[options.encoding ?? 'protobuf'],
    logger: log,
    ...options.client,
  });
  const mirror = new Mirror();
  const source = kubeSource({
    client,
    location: server.url,
    nodeName: testNode,
    streamsLists: options.lists !== 'pages',
    clock: systemClock,
    logger: log,
    tuning: { ...fastTuning, ...options.tuning },
    ...(options.random && { random: options.random }),
  });
  const watched = options.watch ?? allResources;
  source.start(watched, mirror);
  return {
    server,
    client,
    source,
    mirror,
    log,
    converge: (resources = watched) =>
      soon('the mirror shows what the server holds', () => {
        for (const resource of resources) {
          assert.ok(mirror.syncedResources.includes(resource), `${resource} not synced`);
          const expected = expectedState(server, resource, testNode);
          if (!isDeepStrictEqual(mirror.of(resource), expected))
            assert.fail(difference(mirror.of(resource), expected));
        }
        return true;
      }),
    async [Symbol.asyncDispose]() {
      await source.stop();
      client.close();
      await server.close();
    },
  };
}

function clientDefaults(url: string): HttpClientOptions {
  return {
    access: plainAccess(url),
    userAgent: 'kube-proxy/test',
    qps: -1,
    burst: 0,
    contentTypes: contentTypes.json,
    clock: systemClock,
    logger: new LogRecorder(),
  };
}

/** A client with no limits. */
export function testClient(access: ClusterAccess, options: Partial<HttpClientOptions> = {}): RestClient {
  return createRestClient({ ...clientDefaults('http://unused'), access, ...options });
}

export function plainAccess(url: string): ClusterAccess {
  return {
    server: new URL(url),
    skipVerify: false,
    disableCompression: false,
    credentials: fixedCredentials({}),
    headers: {},
  };
}

/** Checks more often than usual: these tests wait hundreds of times for something that takes milliseconds. */
export function soon(what: string, condition: () => boolean): Promise<void> {
  return eventually(what, condition, { everyMs: 3 });
}

function difference(
  actual: ReadonlyMap<string, AnyObject>,
  expected: ReadonlyMap<string, AnyObject>,
): string {
  const missing = [...expected.keys()].filter((key) => !actual.has(key));
  const extra = [...actual.keys()].filter((key) => !expected.has(key));
  const other = [...expected].filter(
    ([key, object]) => actual.has(key) && !isDeepStrictEqual(actual.get(key), object),
  );
  return `missing ${missing}; extra ${extra}; different ${other.map(([key, o]) => `${key}@${o.resourceVersion} has ${actual.get(key)?.resourceVersion}`)}`;
}
