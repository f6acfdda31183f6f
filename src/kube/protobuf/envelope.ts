import { StreamError } from '../stream-error.ts';
import type { Slice } from './chunk-input.ts';
import { type Message, shared } from './message.ts';
import type { Range, WireReader } from './wire-reader.ts';

/** Every object begins with these bytes. */
export const magic = Buffer.from('k8s\0');

/** The kind of an object, and the place of its message. */
export interface Envelope {
  readonly kind: string;
  readonly raw: Range;
}

export const typeMeta: Message<{ kind: string }> = { 2: shared('kind') };

const unknown: Message<{ kind: string; raw: Range; encoding: string }> = {
  1: (reader, envelope) => {
    reader.message('typeMeta', envelope, typeMeta);
  },
  2: (reader, envelope) => {
    envelope.raw = reader.range('raw');
  },
  3: (reader, envelope) => {
    envelope.encoding = reader.shared('contentEncoding');
  },
};

/** Reads the envelope around an object (`runtime.Unknown`, after four fixed bytes). */
export function openEnvelope(reader: WireReader, { bytes, start, end }: Slice): Envelope {
  const body = start + magic.length;
  if (end < body || magic.compare(bytes, start, body) !== 0) {
    throw new StreamError(
      `bytes 0x${bytes.toString('hex', start, Math.min(end, body))} where an object should be`,
    );
  }
  const empty = { start: end, end };
  const { kind, raw, encoding } = reader
    .open(bytes, body, end)
    .read({ kind: '', raw: empty, encoding: '' }, unknown);
  checkEncoding(encoding);
  return { kind, raw };
}

/** The server compresses answers as a whole, not objects. */
export function checkEncoding(encoding: string): void {
  if (encoding !== '')
    throw new StreamError(`an object with the unknown encoding ${JSON.stringify(encoding)}`);
}
