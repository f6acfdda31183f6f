import { goJson } from '../lib/go-quote.ts';

/**
 * A JSON value as written: numbers keep their digits, because the field's type decides how to read them, and objects
 * keep all entries, so that repeated keys can be reported.
 */
export type Json = null | boolean | string | JsonNumber | JsonArray | JsonObject;

export interface JsonNumber {
  readonly kind: 'number';
  readonly text: string;
}

export interface JsonArray {
  readonly kind: 'array';
  readonly items: Json[];
}

export interface JsonObject {
  readonly kind: 'object';
  readonly entries: [key: string, value: Json][];
}

/** The name of a value's type in the messages of Go's JSON package. */
export function jsonKind(json: Json): string {
  if (json === null) return 'null';
  if (typeof json === 'boolean') return 'bool';
  return typeof json === 'string' ? 'string' : json.kind;
}

/** The depth that is shown in a message. */
const SHOWN_DEPTH = 100;

/** The value as JSON text without white space. */
export function jsonText(json: Json, depth = SHOWN_DEPTH): string {
  if (json === null || typeof json !== 'object') return goJson(json);
  if (json.kind === 'number') return json.text;
  if (depth === 0) return '…';
  if (json.kind === 'array') return `[${json.items.map((item) => jsonText(item, depth - 1)).join(',')}]`;
  const members = json.entries.map(([key, value]) => `${goJson(key)}:${jsonText(value, depth - 1)}`);
  return `{${members.join(',')}}`;
}
