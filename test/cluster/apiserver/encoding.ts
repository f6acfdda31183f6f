import { encodeContent, encodeList, encodeObject, encodeWatchFrame } from '../protobuf/envelope.ts';
import { resources, type ServedResource } from './resources.ts';
import type { StoredObject } from './store.ts';

/** An encoding of answers. */
export interface Encoding {
  readonly mediaType: string;
  readonly watchType: string;
  /** Any object, with its kind and apiVersion. */
  object(object: TypedObject): Buffer;
  list(resource: ServedResource, metadata: object, items: readonly StoredObject[]): Buffer;
  /** An event of a watch. */
  event(type: string, resource: ServedResource, object: StoredObject): Buffer;
  /** An event with any object, or with none. */
  anyEvent(type: string, object: TypedObject | undefined): Buffer;
  /** What no client can read as an event. */
  readonly garbage: Buffer;
}

export interface TypedObject {
  readonly kind: string;
  readonly apiVersion: string;
  readonly [field: string]: unknown;
}

export const jsonEncoding: Encoding = {
  mediaType: 'application/json',
  watchType: 'application/json',
  object: (object) => Buffer.from(JSON.stringify(object)),
  list(resource, metadata, items) {
    const { kind, apiVersion } = resources[resource];
    const head = `{"kind":"${kind}List","apiVersion":"${apiVersion}","metadata":${JSON.stringify(metadata)},"items":[`;
    return Buffer.from(`${head}${items.map(({ json }) => json).join(',')}]}\n`);
  },
  event(type, resource, { json }) {
    const { kind, apiVersion } = resources[resource];
    const object = `{"kind":"${kind}","apiVersion":"${apiVersion}",${json.slice(1)}`;
    return Buffer.from(`{"type":"${type}","object":${object}}\n`);
  },
  anyEvent: (type, object) => Buffer.from(`${JSON.stringify({ type, object })}\n`),
  garbage: Buffer.from('\u0000\u0001 not JSON at all }{\n'),
};

export const protobufEncoding: Encoding = {
  mediaType: 'application/vnd.kubernetes.protobuf',
  watchType: 'application/vnd.kubernetes.protobuf;stream=watch',
  object: (object) => encodeObject(object, encodeContent(object.kind, object)),
  list(resource, metadata, items) {
    const { kind, apiVersion } = resources[resource];
    const contents = items.map(({ protobuf }) => protobuf);
    return encodeList({ kind: `${kind}List`, apiVersion }, metadata, contents);
  },
  event: (type, resource, { protobuf }) =>
    encodeWatchFrame(type, encodeObject(resources[resource], protobuf)),
  anyEvent(type, object) {
    return encodeWatchFrame(type, object && protobufEncoding.object(object));
  },
  // The length of a frame that no server sends.
  garbage: Buffer.from('\u00ff\u00ff\u00ff\u00ff not a frame', 'latin1'),
};
