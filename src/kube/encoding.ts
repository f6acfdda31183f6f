import type { Intern } from '../lib/intern.ts';
import type { ResourceName, Resources } from '../model/objects.ts';
import type { ApiError } from './api-error.ts';
import { StreamError } from './stream-error.ts';

/**
 * etcd accepts 1.5 MiB per object by default, in a denser encoding than JSON. Anything larger than this is not an
 * object.
 */
export const maxObjectBytes = 16 * 1024 * 1024;
/** For what surrounds the items of a list. */
export const maxEnvelopeBytes = 1024 * 1024;

/** An object as the server sent it. Its parts are read when they are asked for. */
export interface ReceivedObject {
  /** `namespace/name` or `name`; empty when it has no usable name. */
  readonly name: string;
  /** `metadata.resourceVersion`; empty when it has none. */
  readonly version: string;
  /** Reads the fields in use. Throws `ObjectError` when one is missing or has the wrong type. */
  decode<R extends ResourceName>(resource: R, intern: Intern): Resources[R];
}

/** One page of a list, without its items. */
export interface ListPage {
  readonly version: string;
  /** Token for the next page; empty after the last. */
  readonly next: string;
}

/** One event of a watch. */
export type WatchEvent =
  | { readonly type: 'upsert' | 'delete'; readonly object: ReceivedObject }
  /** Everything up to `version` has been sent; `initialEventsEnd` closes the list that began a streaming watch. */
  | { readonly type: 'bookmark'; readonly version: string; readonly initialEventsEnd: boolean }
  | { readonly type: 'error'; readonly error: ApiError };

export function bookmarkOf(version: string, initialEventsEnd: boolean): WatchEvent {
  if (version === '') throw new StreamError('a bookmark without a resourceVersion');
  return { type: 'bookmark', version, initialEventsEnd };
}

/** The annotation of the bookmark that closes a streamed list; its value is `true`. */
export const initialEventsEndAnnotation = 'k8s.io/initial-events-end';

/** Reads one answer from its chunks, whose borders may fall anywhere. Throws `StreamError` if the answer is malformed. */
export interface AnswerReader<Part, Rest> {
  /** The parts that are complete with this chunk. Iterate to the end before the next call. */
  push(chunk: Uint8Array): Iterable<Part>;
  /** Call it after the last chunk. */
  end(): Rest;
}

/** How answers of the API server are written: as JSON or as protobuf. */
export interface Encoding {
  /** Reads a list; it is never in memory as a whole. */
  list(): AnswerReader<ReceivedObject, ListPage>;
  watch(): AnswerReader<WatchEvent, void>;
  /** Reads the body of a refusal: a Status in the form of its JSON, or anything if a proxy sent it. */
  refusal(body: Buffer): unknown;
}
