import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { recordedAnswers } from '../../../test/cluster/protobuf/answers.ts';
import {
  encodeContent,
  encodeList,
  encodeObject,
  encodeWatchFrame,
} from '../../../test/cluster/protobuf/envelope.ts';
import { cut, cuts, singleBytes } from '../../../test/kube/chunks.ts';
import { createIntern } from '../../lib/intern.ts';
import type { ResourceName } from '../../model/objects.ts';
import { resetDepartedAnnotation } from '../../model/own-annotations.ts';
import { apiErrorOf } from '../api-error.ts';
import { kinds } from '../decode.ts';
import type { AnswerReader, Encoding, ReceivedObject, WatchEvent } from '../encoding.ts';
import { encodingOf } from '../encodings.ts';
import { ObjectError } from '../fields.ts';
import { JsonObject, jsonEncoding } from '../json-encoding.ts';
import { protobufEncoding } from './encoding.ts';

const intern = createIntern();

/** All parts of an answer as `show` turns them into plain values, and what remains at its end. */
function readAll<Part, Rest>(
  reader: AnswerReader<Part, Rest>,
  chunks: readonly Uint8Array[],
  show: (part: Part) => unknown,
): unknown {
  const parts = chunks.flatMap((chunk) => Array.from(reader.push(chunk), show));
  return { parts, rest: reader.end() };
}

/** What a decoder makes of an object: the object, or which field of it is wrong. */
function decoded(object: ReceivedObject, resource: ResourceName): unknown {
  const { name, version } = object;
  try {
    return { name, version, object: object.decode(resource, intern) };
  } catch (error) {
    if (!(error instanceof ObjectError)) throw error;
    const { kind, field } = error;
    return { name, version, kind, object: error.object, field };
  }
}

function eventShown(event: WatchEvent, resource: ResourceName): unknown {
  if (event.type === 'bookmark') return event;
  if (event.type !== 'error') return { type: event.type, object: decoded(event.object, resource) };
  const { status, reason, message, retryAfterSeconds } = event.error;
  return { type: 'error', status, reason, message, retryAfterSeconds };
}

function readList(encoding: Encoding, resource: ResourceName, chunks: readonly Uint8Array[]): unknown {
  return readAll(encoding.list(), chunks, (item) => decoded(item, resource));
}

function readWatch(encoding: Encoding, resource: ResourceName, chunks: readonly Uint8Array[]): unknown {
  return readAll(encoding.watch(), chunks, (event) => eventShown(event, resource));
}

describe('what a real kube-apiserver answered means the same in JSON and protobuf:', () => {
  for (const { name, resource, path, json, protobuf } of recordedAnswers) {
    if (protobuf === undefined) continue;
    test(name, () => {
      assert.equal(encodingOf(protobuf.contentType), protobufEncoding);
      const text = Buffer.from(json.body);
      const bytes = Buffer.from(protobuf.body, 'base64');
      if (json.status >= 300) {
        const read = (encoding: Encoding, body: Buffer) => apiErrorOf(json.status, encoding.refusal(body));
        assert.deepEqual({ ...read(protobufEncoding, bytes) }, { ...read(jsonEncoding, text) });
        assert.equal(read(protobufEncoding, bytes).message, read(jsonEncoding, text).message);
        return;
      }
      const read = path.includes('watch=') ? readWatch : readList;
      const expected = read(jsonEncoding, resource, [text]);
      assert.deepEqual(read(protobufEncoding, resource, [bytes]), expected);
      assert.deepEqual(read(protobufEncoding, resource, singleBytes(bytes)), expected);
    });
  }
});

describe('an object decodes to the same in JSON and protobuf:', () => {
  const word = fc.oneof(
    fc.constantFrom('', 'TCP', 'a', 'é', 'node-1'),
    fc.string({ unit: 'grapheme', maxLength: 300 }),
  );
  /** Some of the keys, with values that are at times null or of a wrong type. */
  const some = <T extends Record<string, fc.Arbitrary<unknown>>>(model: T) =>
    fc.record(model, { requiredKeys: [] });
  const list = <T>(item: fc.Arbitrary<T>) => fc.array(item, { maxLength: 4 });
  const text = fc.option(word);
  const port = fc.option(fc.integer({ min: 0, max: 65_535 }));
  const map = fc.dictionary(fc.oneof(fc.constantFrom('kubernetes.io/service-name', 'a'), word), word, {
    maxKeys: 4,
  });
  const seconds = fc.integer({ min: -1e9, max: 4e9 }).map((n) => new Date(n * 1000).toISOString());
  const annotations = fc.dictionary(
    fc.oneof(
      fc.constantFrom('endpoints.kubernetes.io/last-change-trigger-time'),
      fc.constantFrom(
        'kube-proxy-ts.dev/',
        'kube-proxy-ts.dev/balance',
        resetDepartedAnnotation,
        'kube-proxy-ts.dev',
      ),
      word,
    ),
    word,
  );
  const metadata = fc
    .tuple(
      some({
        namespace: text,
        resourceVersion: text,
        uid: text,
        creationTimestamp: seconds,
        deletionTimestamp: seconds,
        labels: map,
        annotations,
        generation: fc.nat(),
        finalizers: list(word),
      }),
      word,
    )
    .map(([rest, name]) => ({ ...rest, name }));
  const named = some({ name: text });
  const bool = fc.option(fc.boolean());
  const objects: { readonly [R in ResourceName]: fc.Arbitrary<object> } = {
    services: fc.record({
      metadata,
      spec: some({
        type: text,
        clusterIP: text,
        clusterIPs: list(word),
        ipFamilies: list(word),
        externalIPs: list(word),
        loadBalancerSourceRanges: list(word),
        externalTrafficPolicy: text,
        internalTrafficPolicy: text,
        healthCheckNodePort: port,
        sessionAffinity: text,
        selector: map,
        sessionAffinityConfig: some({ clientIP: some({ timeoutSeconds: port }) }),
        ports: list(
          some({
            name: text,
            protocol: text,
            port,
            nodePort: port,
            targetPort: fc.oneof(word, fc.nat(65_535)),
          }),
        ),
      }),
      status: some({
        loadBalancer: some({ ingress: list(some({ ip: text, hostname: text, ipMode: text })) }),
      }),
    }),
    endpointSlices: fc.record({
      metadata,
      addressType: text,
      endpoints: list(
        some({
          addresses: list(word),
          conditions: some({ ready: bool, serving: bool, terminating: bool }),
          hostname: text,
          nodeName: text,
          zone: text,
          targetRef: some({ kind: fc.constantFrom('Pod', 'Node'), namespace: text, name: text, uid: text }),
          hints: some({ forZones: list(named), forNodes: list(named) }),
        }),
      ),
      ports: list(some({ name: text, protocol: text, port, appProtocol: text })),
    }),
    nodes: fc.record({
      metadata,
      spec: some({ podCIDR: text, podCIDRs: list(word), taints: list(some({ key: text, effect: text })) }),
      status: some({
        addresses: list(
          some({ type: fc.constantFrom('InternalIP', 'ExternalIP', 'Hostname'), address: text }),
        ),
        capacity: map,
      }),
    }),
    serviceCIDRs: fc.record({ metadata, spec: some({ cidrs: list(word) }) }),
  };

  function check(resource: ResourceName, object: unknown, places: readonly number[]): void {
    const kind = kinds[resource];
    const raw = JSON.parse(JSON.stringify(object));
    const expected = decoded(new JsonObject(raw), resource);
    const content = encodeContent(kind, raw);
    const type = { apiVersion: 'v1', kind };
    const frame = encodeWatchFrame('ADDED', encodeObject(type, content));
    assert.deepEqual(readWatch(protobufEncoding, resource, cut(frame, places)), {
      parts: [{ type: 'upsert', object: expected }],
      rest: undefined,
    });
    const answer = encodeList({ ...type, kind: `${kind}List` }, { resourceVersion: '7' }, [content, content]);
    assert.deepEqual(readList(protobufEncoding, resource, cut(answer, places)), {
      parts: [expected, expected],
      rest: { version: '7', next: '' },
    });
  }

  for (const resource of ['services', 'endpointSlices', 'nodes', 'serviceCIDRs'] as const) {
    test(resource, () => {
      fc.assert(
        fc.property(objects[resource], cuts, (object, places) => check(resource, object, places)),
        { numRuns: 300 },
      );
    });
  }

  const identity = { namespace: 'shop', name: 'front', resourceVersion: '42' };
  const wrong: [resource: ResourceName, field: string, object: object][] = [
    ['services', 'metadata.name', { metadata: { name: '' } }],
    ['services', 'metadata.resourceVersion', { metadata: { ...identity, resourceVersion: 5 } }],
    ['services', 'spec.clusterIP', { spec: { clusterIP: 1 } }],
    ['services', 'spec.clusterIPs[1]', { spec: { clusterIPs: ['10.0.0.1', true] } }],
    ['services', 'spec.ports[0].port', { spec: { ports: [{ port: '80' }] } }],
    ['services', 'spec.ports[1].port', { spec: { ports: [{ port: 1 }, { port: 65_536 }] } }],
    ['services', 'spec.ports[0].nodePort', { spec: { ports: [{ nodePort: -1 }] } }],
    ['services', 'spec.healthCheckNodePort', { spec: { healthCheckNodePort: -(2 ** 31) } }],
    [
      'services',
      'spec.sessionAffinityConfig.clientIP.timeoutSeconds',
      { spec: { sessionAffinityConfig: { clientIP: { timeoutSeconds: -1 } } } },
    ],
    ['services', 'status.loadBalancer.ingress[0].ip', { status: { loadBalancer: { ingress: [{ ip: 7 }] } } }],
    ['services', 'spec', { spec: 5 }],
    ['endpointSlices', 'addressType', { addressType: 4 }],
    ['endpointSlices', 'endpoints[1].nodeName', { endpoints: [{}, { nodeName: 7 }] }],
    ['endpointSlices', 'endpoints[0].conditions.ready', { endpoints: [{ conditions: { ready: 'no' } }] }],
    [
      'endpointSlices',
      'endpoints[0].hints.forZones[0].name',
      { endpoints: [{ hints: { forZones: [{ name: 1 }] } }] },
    ],
    [
      'endpointSlices',
      'endpoints[0].targetRef.name',
      { endpoints: [{ targetRef: { kind: 'Pod', name: 5 } }] },
    ],
    [
      'endpointSlices',
      'metadata.labels["kubernetes.io/service-name"]',
      { metadata: { ...identity, labels: { 'kubernetes.io/service-name': 5 } } },
    ],
    ['endpointSlices', 'ports[0].port', { ports: [{ port: 70_000 }] }],
    ['nodes', 'status.addresses[0].address', { status: { addresses: [{ type: 'InternalIP', address: 1 }] } }],
    ['serviceCIDRs', 'spec.cidrs[0]', { spec: { cidrs: [9] } }],
  ];
  for (const [resource, field, object] of wrong) {
    test(`${resource}: a wrong ${field} is named`, () => {
      const raw = { metadata: identity, ...object };
      check(resource, raw, []);
      const content = encodeContent(kinds[resource], raw);
      const frame = encodeWatchFrame(
        'ADDED',
        encodeObject({ apiVersion: '', kind: kinds[resource] }, content),
      );
      const [event] = protobufEncoding.watch().push(frame);
      assert.ok(event?.type === 'upsert');
      assert.throws(() => event.object.decode(resource, intern), { name: 'ObjectError', field });
    });
  }
});
