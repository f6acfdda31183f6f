import { maxEnvelopeBytes, maxObjectBytes } from './encoding.ts';
import { ByteGatherer, isSpace, ValueScanner } from './json-scanner.ts';
import { StreamError } from './stream-error.ts';

const openBrace = 0x7b;
const closeBracket = 0x5d;
const comma = 0x2c;

/**
 * Splits a watch answer: JSON objects in a row, with or without white space between them. Fails with `StreamError` on
 * anything else.
 */
export class FrameSplitter {
  readonly #gathered: ByteGatherer;
  #scanner: ValueScanner | undefined;

  constructor(limit = maxObjectBytes) {
    this.#gathered = new ByteGatherer('a watch event', limit);
  }

  *push(chunk: Uint8Array): Generator<unknown> {
    let at = 0;
    for (;;) {
      if (this.#scanner === undefined) {
        at = skipSpace(chunk, at);
        if (at === chunk.length) return;
        if (chunk[at] !== openBrace) throw unexpected(chunk[at], 'a watch event');
        this.#scanner = new ValueScanner();
      }
      const end = this.#scanner.scan(chunk, at);
      if (end < 0) {
        this.#gathered.add(chunk.subarray(at));
        return;
      }
      this.#gathered.add(chunk.subarray(at, end));
      this.#scanner = undefined;
      at = end;
      yield this.#gathered.parse();
    }
  }

  /** Fails when the stream stopped inside an object. */
  end(): void {
    if (this.#scanner !== undefined) throw new StreamError('the stream ended inside a watch event');
  }
}

/** Where a `ListSplitter` is: in the envelope, between items, inside one, or past the end. */
type Place = 'start' | 'envelope' | 'first-item' | 'next-item' | 'after-item' | 'item' | 'end';

/** Splits one list object into its items and its envelope; chunk borders may fall anywhere. */
export class ListSplitter {
  readonly #envelope = new ByteGatherer('the envelope of a list', maxEnvelopeBytes);
  readonly #envelopeScanner = new ValueScanner(true);
  readonly #item: ByteGatherer;
  #itemScanner = new ValueScanner();
  #place: Place = 'start';
  #foundItems = false;

  constructor(limit = maxObjectBytes) {
    this.#item = new ByteGatherer('an item of a list', limit);
  }

  *push(chunk: Uint8Array): Generator<unknown> {
    let at = 0;
    while (at < chunk.length) {
      if (this.#place === 'item') {
        const end = this.#itemScanner.scan(chunk, at);
        this.#item.add(chunk.subarray(at, end < 0 ? chunk.length : end));
        if (end < 0) return;
        at = end;
        this.#place = 'after-item';
        yield this.#item.parse();
      } else if (this.#place === 'envelope') {
        at = this.#scanEnvelope(chunk, at);
      } else {
        at = this.#step(chunk, skipSpace(chunk, at));
      }
    }
  }

  /** Returns the envelope. Fails when the list is incomplete or not a list. */
  end(): Readonly<Record<string, unknown>> {
    if (this.#place !== 'end') throw new StreamError('the stream ended inside a list');
    const parsed = this.#envelope.parse();
    const envelope = typeof parsed === 'object' && parsed !== null ? { ...parsed } : {};
    // An empty list may be written as null.
    if (!this.#foundItems && !('items' in envelope && envelope.items === null)) {
      throw new StreamError('the answer has no items: it is not a list');
    }
    return envelope;
  }

  #scanEnvelope(chunk: Uint8Array, at: number): number {
    const stop = this.#envelopeScanner.scan(chunk, at);
    const next = stop < 0 ? chunk.length : stop;
    this.#envelope.add(chunk.subarray(at, next));
    if (stop >= 0 && this.#envelopeScanner.done) this.#place = 'end';
    else if (stop >= 0 && /"items"\s*:\s*\[$/.test(this.#envelope.tail(64))) {
      if (this.#foundItems) throw new StreamError('a list has two arrays of items');
      this.#foundItems = true;
      this.#place = 'first-item';
    }
    return next;
  }

  /** Reads the byte between two values and returns where to go on. */
  #step(chunk: Uint8Array, at: number): number {
    const byte = chunk[at];
    if (byte === undefined) return at;
    const place = this.#place;
    if (byte === openBrace && place === 'start') {
      this.#place = 'envelope';
      return at;
    }
    if (byte === openBrace && (place === 'first-item' || place === 'next-item')) {
      this.#itemScanner = new ValueScanner();
      this.#place = 'item';
      return at;
    }
    if (byte === comma && place === 'after-item') {
      this.#place = 'next-item';
      return at + 1;
    }
    if (byte === closeBracket && (place === 'first-item' || place === 'after-item')) {
      this.#place = 'envelope';
      return at;
    }
    throw unexpected(byte, place === 'end' ? 'the end of a list' : 'an item of a list');
  }
}

function skipSpace(chunk: Uint8Array, from: number): number {
  let at = from;
  while (isSpace(chunk[at])) at++;
  return at;
}

function unexpected(byte: number | undefined, wanted: string): StreamError {
  const shown = byte === undefined ? 'nothing' : `byte 0x${byte.toString(16).padStart(2, '0')}`;
  return new StreamError(`${shown} where ${wanted} should be`);
}
