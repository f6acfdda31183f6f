import type { Field, Message, Type } from './messages.ts';
import { BackwardWriter } from './writer.ts';

/**
 * Encodes a JSON object as a protobuf message. A value of a wrong type is written in the form of its own type, so that
 * the receiver finds the mistake: a number where the message has a text, or a text where it has a message.
 */
export function encodeMessage(message: Message, object: unknown): Buffer {
  const writer = new BackwardWriter();
  writeFields(writer, message, object);
  return writer.bytes();
}

function writeFields(writer: BackwardWriter, message: Message, object: unknown): void {
  const values = isMap(object) ? object : {};
  for (const [name, field] of lastFieldFirst(message)) writeField(writer, field, values[name]);
}

const fieldsInReverse = new WeakMap<Message, readonly [string, Field][]>();

function lastFieldFirst(message: Message): readonly [string, Field][] {
  const known = fieldsInReverse.get(message) ?? Object.entries(message).reverse();
  fieldsInReverse.set(message, known);
  return known;
}

function writeField(writer: BackwardWriter, { number, type, written }: Field, value: unknown): void {
  if (written === 'map' && isMap(value)) {
    const keys = Object.keys(value).sort().reverse();
    for (const key of keys) writeValue(writer, number, entryOf(type), { key, value: value[key] });
  } else if (written === 'each' && Array.isArray(value)) {
    for (const element of value.toReversed()) writeValue(writer, number, type, element);
  } else if (written === 'always' || isGiven(value)) {
    writeValue(writer, number, type, value);
  }
}

function entryOf(type: Type): Message {
  return {
    key: { number: 1, type: 'string', written: 'always' },
    value: { number: 2, type, written: 'always' },
  };
}

function writeValue(writer: BackwardWriter, field: number, type: Type, value: unknown): void {
  const before = writer.length;
  if (isVarint(type, value)) {
    writer.varint(Number(value ?? 0));
    writer.tag(field, 0);
  } else {
    writeContent(writer, type, value);
    writer.delimited(field, before);
  }
}

function isVarint(type: Type, value: unknown): boolean {
  if (type === 'intOrString' || type === 'quantity') return false;
  if (!isGiven(value)) return type === 'integer' || type === 'boolean';
  return typeof value === 'number' || typeof value === 'boolean';
}

function writeContent(writer: BackwardWriter, type: Type, value: unknown): void {
  if (typeof type === 'object' && typeof value !== 'string') writeFields(writer, type, value);
  else if (value instanceof Uint8Array) writer.raw(value);
  else if (type === 'time' || type === 'microTime') writeTime(writer, type, value);
  else if (type === 'fieldsV1') writeFields(writer, rawJson, { Raw: Buffer.from(JSON.stringify(value)) });
  else if (type === 'quantity') writeFields(writer, quantity, { string: String(value) });
  else if (type === 'intOrString') writeFields(writer, intOrString, choiceOf(value));
  else writer.text(isGiven(value) ? String(value) : '');
}

const rawJson: Message = { Raw: { number: 1, type: 'bytes', written: 'always' } };

const quantity: Message = { string: { number: 1, type: 'string', written: 'always' } };

const intOrString: Message = {
  type: { number: 1, type: 'integer', written: 'always' },
  intVal: { number: 2, type: 'integer', written: 'always' },
  strVal: { number: 3, type: 'string', written: 'always' },
};

function choiceOf(value: unknown): object {
  return typeof value === 'string' ? { type: 1, strVal: value } : { type: 0, intVal: value };
}

const instant: Message = {
  seconds: { number: 1, type: 'integer', written: 'always' },
  nanos: { number: 2, type: 'integer', written: 'always' },
};

/** No time is an empty message. */
function writeTime(writer: BackwardWriter, type: 'time' | 'microTime', value: unknown): void {
  if (!isGiven(value)) return;
  const seconds = Math.floor(Date.parse(String(value)) / 1000);
  const fraction = /\.(\d+)/.exec(String(value))?.[1] ?? '0';
  const nanos = type === 'time' ? 0 : Number(fraction.padEnd(9, '0').slice(0, 9));
  writeFields(writer, instant, { seconds, nanos });
}

function isGiven(value: unknown): boolean {
  return value !== undefined && value !== null;
}

function isMap(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
