import { maxInt32 } from '../decode.ts';
import type { Fields } from '../fields.ts';
import type { Slice } from './chunk-input.ts';
import { integer, type Message, part, text } from './message.ts';
import type { WireReader } from './wire-reader.ts';

interface Status {
  message: string;
  reason: string;
  code: number;
  retryAfterSeconds: number;
}

const status: Message<Status> = {
  3: text('message'),
  4: text('reason'),
  5: part('details', { 5: integer('retryAfterSeconds', maxInt32) }),
  6: integer('code', maxInt32),
};

/** Reads a Status, in the form that it has in JSON. */
export function readStatus(reader: WireReader, { bytes, start, end }: Slice): Fields {
  const empty = { message: '', reason: '', code: 0, retryAfterSeconds: 0 };
  const { message, reason, code, retryAfterSeconds } = reader.open(bytes, start, end).read(empty, status);
  return { kind: 'Status', message, reason, code, details: { retryAfterSeconds } };
}
