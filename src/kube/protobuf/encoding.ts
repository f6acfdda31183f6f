import { apiErrorOf } from '../api-error.ts';
import {
  type AnswerReader,
  bookmarkOf,
  type Encoding,
  type ListPage,
  type ReceivedObject,
  type WatchEvent,
} from '../encoding.ts';
import { FieldFault, printValue } from '../fields.ts';
import { StreamError } from '../stream-error.ts';
import type { Slice } from './chunk-input.ts';
import { checkEncoding, openEnvelope, typeMeta } from './envelope.ts';
import { FrameSplitter } from './frame-splitter.ts';
import { type ListPart, ListSplitter } from './list-parser.ts';
import type { Message } from './message.ts';
import { endsInitialEvents, ProtobufObject } from './object.ts';
import { readStatus } from './status.ts';
import { type Range, WireReader } from './wire-reader.ts';

/** `application/vnd.kubernetes.protobuf`. */
export const protobufEncoding: Encoding = {
  list: () => new ListReader(),
  watch: () => new WatchReader(),
  refusal: readRefusal,
};

const listMeta: Message<{ version: string; next: string }> = {
  2: (reader, page) => {
    page.version = reader.text('resourceVersion');
  },
  3: (reader, page) => {
    page.next = reader.text('continue');
  },
};

class ListReader implements AnswerReader<ReceivedObject, ListPage> {
  readonly #splitter = new ListSplitter();
  readonly #reader = new WireReader();
  readonly #page = { version: '', next: '', kind: '' };

  *push(chunk: Uint8Array): Generator<ReceivedObject> {
    for (const { name, slice } of this.#splitter.push(chunk)) {
      if (name === 'item') yield new ProtobufObject(this.#reader, '', slice);
      else this.#readAround(name, slice);
    }
  }

  end(): ListPage {
    this.#splitter.end();
    const { version, next, kind } = this.#page;
    if (!kind.endsWith('List'))
      throw new StreamError(`a list of the kind ${printValue(kind)}: it is not a list`);
    if (version === '') throw new StreamError('a list without a resourceVersion');
    return { version, next };
  }

  #readAround(name: Exclude<ListPart['name'], 'item'>, { bytes, start, end }: Slice): void {
    const reader = this.#reader.open(bytes, start, end);
    try {
      if (name === 'typeMeta') reader.read(this.#page, typeMeta);
      else if (name === 'metadata') reader.read(this.#page, listMeta);
      else checkEncoding(bytes.toString('latin1', start, end));
    } catch (error) {
      throw unusable(error);
    }
  }
}

class WatchReader implements AnswerReader<WatchEvent, void> {
  readonly #splitter = new FrameSplitter();
  readonly #reader = new WireReader();

  *push(chunk: Uint8Array): Generator<WatchEvent> {
    for (const frame of this.#splitter.push(chunk)) yield this.#event(frame);
  }

  end(): void {
    this.#splitter.end();
  }

  #event(frame: Slice): WatchEvent {
    try {
      return watchEventOf(this.#reader, frame);
    } catch (error) {
      throw unusable(error);
    }
  }
}

interface WatchFrame {
  type: string;
  object: Range | undefined;
}

const rawExtension: Message<WatchFrame> = {
  1: (reader, event) => {
    event.object = reader.range('raw');
  },
};

const watchFrame: Message<WatchFrame> = {
  1: (reader, event) => {
    event.type = reader.shared('type');
  },
  2: (reader, event) => {
    reader.message('object', event, rawExtension);
  },
};

/** Reads one frame of a watch stream. Throws `StreamError` for an unknown form. */
function watchEventOf(reader: WireReader, { bytes, start, end }: Slice): WatchEvent {
  const empty: WatchFrame = { type: '', object: undefined };
  const { type, object } = reader.open(bytes, start, end).read(empty, watchFrame);
  if (object === undefined)
    throw new StreamError(`a watch event of type ${printValue(type)} without an object`);
  const { kind, raw } = openEnvelope(reader, { bytes, start: object.start, end: object.end });
  const slice = { bytes, start: raw.start, end: raw.end };
  switch (type) {
    case 'ADDED':
    case 'MODIFIED':
      return { type: 'upsert', object: new ProtobufObject(reader, kind, slice) };
    case 'DELETED':
      return { type: 'delete', object: new ProtobufObject(reader, kind, slice) };
    case 'BOOKMARK':
      return bookmarkOf(new ProtobufObject(reader, kind, slice).version, endsInitialEvents(reader, slice));
    case 'ERROR':
      return { type: 'error', error: apiErrorOf(0, readStatus(reader, slice)) };
    default:
      throw new StreamError(`a watch event of the unknown type ${printValue(type)}`);
  }
}

/** A wrong field in what surrounds objects makes the whole answer unusable. */
function unusable(error: unknown): unknown {
  return error instanceof FieldFault ? new StreamError(`protobuf field ${error.message}`) : error;
}

/** A body that is no Status object is left as text. */
function readRefusal(body: Buffer): unknown {
  const reader = new WireReader();
  try {
    const { kind, raw } = openEnvelope(reader, { bytes: body, start: 0, end: body.length });
    return kind === 'Status' ? readStatus(reader, { bytes: body, ...raw }) : undefined;
  } catch (error) {
    if (error instanceof FieldFault || error instanceof StreamError) return body.toString('utf8');
    throw error;
  }
}
