import { encodeMessage } from './encode.ts';
import { kinds, list, unknownObject, watchEvent } from './messages.ts';

/** What an object says about its type. */
export interface TypeMeta {
  readonly apiVersion: string;
  readonly kind: string;
}

/** The first bytes of every answer in protobuf. */
const magic = Buffer.from('k8s\0');

/** An object without its envelope, as lists have it. */
export function encodeContent(kind: string, object: unknown): Buffer {
  const message = kinds[kind];
  if (message === undefined) throw new Error(`no protobuf message for kind ${kind}`);
  return encodeMessage(message, object);
}

/** An object with its envelope. `content` is from `encodeContent`. */
export function encodeObject({ apiVersion, kind }: TypeMeta, content: Uint8Array): Buffer {
  const typeMeta = { apiVersion, kind };
  return Buffer.concat([magic, encodeMessage(unknownObject, { typeMeta, raw: content })]);
}

/** A list with its envelope. `items` are from `encodeContent`. */
export function encodeList(type: TypeMeta, metadata: unknown, items: readonly Uint8Array[]): Buffer {
  return encodeObject(type, encodeMessage(list, { metadata, items }));
}

/** One frame of a watch: its length in four bytes, then the event. `object` is from `encodeObject`. */
export function encodeWatchFrame(type: string, object: Uint8Array | undefined): Buffer {
  const event = encodeMessage(watchEvent, { type, object: { raw: object } });
  const length = Buffer.alloc(4);
  length.writeUInt32BE(event.length);
  return Buffer.concat([length, event]);
}
