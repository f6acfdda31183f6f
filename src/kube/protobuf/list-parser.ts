import { maxEnvelopeBytes, maxObjectBytes } from '../encoding.ts';
import { StreamError } from '../stream-error.ts';
import { ChunkInput, type Header, type Parser, type Slice } from './chunk-input.ts';
import { magic } from './envelope.ts';
import { wire } from './wire-reader.ts';

export type ListPartName = 'typeMeta' | 'contentEncoding' | 'metadata' | 'item';

/** A part of a list that is read as a whole. */
export interface ListPart {
  readonly name: ListPartName;
  readonly slice: Slice;
}

/** The parts of the envelope around a list, and of the list itself, by the numbers of their fields. */
const envelopeParts: Readonly<Record<number, ListPartName>> = { 1: 'typeMeta', 3: 'contentEncoding' };
const rawField = 2;
const listParts: Readonly<Record<number, ListPartName>> = { 1: 'metadata', 2: 'item' };

/** Splits a list answer into its items and the parts around them. */
export class ListSplitter {
  readonly #input = new ChunkInput();
  readonly #parser: Parser<ListPart>;

  constructor(limit = maxObjectBytes) {
    this.#parser = listAnswer(this.#input, limit);
    this.#parser.next();
  }

  *push(chunk: Uint8Array): Generator<ListPart> {
    this.#input.push(chunk);
    for (;;) {
      const { value } = this.#parser.next();
      if (value === undefined) return;
      yield value;
    }
  }

  /** Fails when the stream stopped inside the list. */
  end(): void {
    if (this.#input.position !== this.#input.boundary)
      throw new StreamError('the stream ended inside a list');
  }
}

/**
 * Parses a list answer: an envelope, and in it the list. Only one part at a time is in memory. A field that is not in use
 * is passed over; all that is not an item has room in 1 MiB.
 */
function* listAnswer(input: ChunkInput, limit: number): Parser<ListPart> {
  const budget = new Budget(limit);
  yield* readMagic(input);
  for (let hasList = false; ; ) {
    if (hasList) input.boundary = input.position;
    const header = yield* input.header();
    if (header.field !== rawField || header.type !== wire.bytes) {
      yield* readPart(input, header, envelopeParts, budget);
      continue;
    }
    if (hasList) throw new StreamError('an answer with two lists');
    hasList = true;
    const end = input.position + header.length;
    while (input.position < end) {
      const inner = yield* input.header();
      if (input.position + inner.length > end) throw new StreamError('a list is shorter than its parts');
      yield* readPart(input, inner, listParts, budget);
    }
  }
}

function* readMagic(input: ChunkInput): Generator<undefined, void, void> {
  const { bytes, start, end } = yield* input.value(magic.length);
  const seen = bytes.subarray(start, end);
  if (!magic.equals(seen)) throw new StreamError(`bytes 0x${seen.toString('hex')} where an object should be`);
}

function* readPart(
  input: ChunkInput,
  { field, type, length }: Header,
  names: Readonly<Record<number, ListPartName>>,
  budget: Budget,
): Parser<ListPart> {
  const name = type === wire.bytes ? names[field] : undefined;
  budget.spend(name, length);
  if (name === undefined) yield* input.skip(length);
  else yield { name, slice: yield* input.value(length) };
}

/** The limits of a list: for each item, and for all the rest. */
class Budget {
  readonly #itemBytes: number;
  #rest = maxEnvelopeBytes;

  constructor(itemBytes: number) {
    this.#itemBytes = itemBytes;
  }

  spend(name: ListPartName | undefined, length: number): void {
    if (name === 'item') {
      if (length <= this.#itemBytes) return;
      throw new StreamError(`an item of a list is larger than ${this.#itemBytes} bytes`);
    }
    // A field takes two bytes at least, so that a list of empty fields has an end.
    this.#rest -= length + 2;
    if (this.#rest < 0)
      throw new StreamError(`the envelope of a list is larger than ${maxEnvelopeBytes} bytes`);
  }
}
