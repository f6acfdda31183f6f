import type { Intern } from '../lib/intern.ts';
import type { ResourceName, Resources } from '../model/objects.ts';
import { apiErrorOf } from './api-error.ts';
import { decoders } from './decode.ts';
import { objectName } from './decode-object.ts';
import {
  type AnswerReader,
  bookmarkOf,
  type Encoding,
  initialEventsEndAnnotation,
  type ListPage,
  type ReceivedObject,
  type WatchEvent,
} from './encoding.ts';
import { type Fields, isFields, printValue } from './fields.ts';
import { FrameSplitter, ListSplitter } from './json-stream.ts';
import { StreamError } from './stream-error.ts';

export const jsonEncoding: Encoding = {
  list: () => new ListReader(),
  watch: () => new WatchReader(),
  refusal: (body) => parseAny(body.toString('utf8')),
};

/** An object that JSON.parse has read. */
export class JsonObject implements ReceivedObject {
  readonly #raw: unknown;

  constructor(raw: unknown) {
    this.#raw = raw;
  }

  get name(): string {
    return objectName(this.#raw);
  }

  get version(): string {
    const { resourceVersion } = metadataOf(this.#raw);
    return typeof resourceVersion === 'string' ? resourceVersion : '';
  }

  get endsInitialEvents(): boolean {
    const { annotations } = metadataOf(this.#raw);
    return isFields(annotations) && annotations[initialEventsEndAnnotation] === 'true';
  }

  decode<R extends ResourceName>(resource: R, intern: Intern): Resources[R] {
    return decoders[resource](this.#raw, intern);
  }
}

class ListReader implements AnswerReader<ReceivedObject, ListPage> {
  readonly #splitter = new ListSplitter();

  *push(chunk: Uint8Array): Generator<ReceivedObject> {
    for (const item of this.#splitter.push(chunk)) yield new JsonObject(item);
  }

  end(): ListPage {
    const { metadata } = this.#splitter.end();
    const { resourceVersion: version, continue: next = '' } = isFields(metadata) ? metadata : {};
    if (typeof version !== 'string' || version === '') {
      throw new StreamError(`a list whose metadata.resourceVersion is ${printValue(version)}`);
    }
    if (typeof next !== 'string') {
      throw new StreamError(`a list whose metadata.continue is ${printValue(next)}`);
    }
    return { version, next };
  }
}

class WatchReader implements AnswerReader<WatchEvent, void> {
  readonly #splitter = new FrameSplitter();

  *push(chunk: Uint8Array): Generator<WatchEvent> {
    for (const frame of this.#splitter.push(chunk)) yield watchEventOf(frame);
  }

  end(): void {
    this.#splitter.end();
  }
}

/** Reads one frame of a watch stream. Throws `StreamError` for an unknown form. */
function watchEventOf(frame: unknown): WatchEvent {
  const { type, object: raw }: Fields = isFields(frame) ? frame : {};
  if (!isFields(raw)) throw new StreamError(`a watch event of type ${printValue(type)} without an object`);
  const object = new JsonObject(raw);
  switch (type) {
    case 'ADDED':
    case 'MODIFIED':
      return { type: 'upsert', object };
    case 'DELETED':
      return { type: 'delete', object };
    case 'BOOKMARK':
      return bookmarkOf(object.version, object.endsInitialEvents);
    case 'ERROR':
      return { type: 'error', error: apiErrorOf(0, raw) };
    default:
      throw new StreamError(`a watch event of the unknown type ${printValue(type)}`);
  }
}

function metadataOf(raw: unknown): Fields {
  return isFields(raw) && isFields(raw.metadata) ? raw.metadata : {};
}

/** The body of an error may come from a proxy and need not be JSON. */
function parseAny(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
