import { goJson } from '../lib/go-quote.ts';

/**
 * A JSON value as it stands in the text: numbers keep their digits (a field's type decides what they mean) and
 * objects keep every entry, so that a repeated key can be told.
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

/** What Go's JSON package calls the value in its messages. */
export function jsonKind(json: Json): string {
  if (json === null) return 'null';
  if (typeof json === 'boolean') return 'bool';
  return typeof json === 'string' ? 'string' : json.kind;
}

/** Deeper than anything one would want to read in a message. */
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
