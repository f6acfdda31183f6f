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
