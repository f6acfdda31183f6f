/** The members of a JSON object, types not yet known. */
export type Fields = Readonly<Record<string, unknown>>;

/** A value of the wrong type. Each decoder on the way up adds its part of the path with `inside`. */
export class FieldFault extends Error {
  readonly path: string;
  readonly value: unknown;
  readonly wanted: string;

  constructor(path: string, value: unknown, wanted: string) {
    super(`${path}: want ${wanted}, got ${printValue(value)}`);
    this.path = path;
    this.value = value;
    this.wanted = wanted;
  }

  inside(parent: string): FieldFault {
    const joined =
      this.path === '' || this.path.startsWith('[') ? parent + this.path : `${parent}.${this.path}`;
    return new FieldFault(joined, this.value, this.wanted);
  }
}

/** An object with a missing or wrong field; the message names object, field and value. */
export class ObjectError extends Error {
  readonly code = 'KPT_OBJECT_INVALID';
  override readonly name = 'ObjectError';
  readonly kind: string;
  /** `namespace/name` or `name`; empty when the object has none. */
  readonly object: string;
  readonly field: string;
  readonly value: unknown;

  constructor(kind: string, object: string, field: string, value: unknown, wanted: string) {
    const subject = object === '' ? kind : `${kind} ${object}`;
    const place = field === '' ? '' : `${field}: `;
    super(`${subject}: ${place}want ${wanted}, got ${printValue(value)}`);
    this.kind = kind;
    this.object = object;
    this.field = field;
    this.value = value;
  }
}

/** Short JSON of any value, for messages. */
export function printValue(value: unknown): string {
  const text = describe(value);
  return text.length <= 80 ? text : `${text.slice(0, 77)}...`;
}

function describe(value: unknown): string {
  // Not their content: it may be large, and deep nesting would overflow the stack.
  if (Array.isArray(value)) return `an array of ${value.length}`;
  if (typeof value === 'object' && value !== null) return 'an object';
  if (typeof value === 'string') return JSON.stringify(value.slice(0, 100));
  return String(value);
}

/** Runs a decoder and prefixes the path of a fault with `parent`. */
export function within<T>(parent: string, run: () => T): T {
  try {
    return run();
  } catch (error) {
    throw error instanceof FieldFault ? error.inside(parent) : error;
  }
}

export function isFields(raw: unknown): raw is Fields {
  return typeof raw === 'object' && raw !== null && !Array.isArray(raw);
}

export function fieldsOf(raw: unknown): Fields {
  if (!isFields(raw)) throw new FieldFault('', raw, 'an object');
  return raw;
}

/** Decodes a nested object; null and absent give the decoder an empty one. */
export function objectAt<T>(from: Fields, key: string, decode: (fields: Fields) => T): T {
  const raw = from[key] ?? {};
  return within(key, () => decode(fieldsOf(raw)));
}

/** A string; empty when null or absent, as Go decodes it. */
export function stringAt(from: Fields, key: string): string {
  return optionalStringAt(from, key) ?? '';
}

export function optionalStringAt(from: Fields, key: string): string | undefined {
  const raw = from[key];
  if (raw === undefined || raw === null) return undefined;
  if (typeof raw !== 'string') throw new FieldFault(printKey(key), raw, 'a string');
  return raw;
}

export function booleanAt(from: Fields, key: string): boolean | undefined {
  const raw = from[key];
  if (raw === undefined || raw === null) return undefined;
  if (typeof raw !== 'boolean') throw new FieldFault(key, raw, 'true or false');
  return raw;
}

export function integerAt(from: Fields, key: string, max: number): number | undefined {
  const raw = from[key];
  if (raw === undefined || raw === null) return undefined;
  if (typeof raw !== 'number' || !Number.isInteger(raw) || raw < 0 || raw > max) {
    throw new FieldFault(key, raw, `an integer between 0 and ${max}`);
  }
  return raw;
}

/** The empty list that objects share. */
export const nothing: readonly never[] = Object.freeze([]);

/** Decodes every item of an array; null and absent give the empty list. */
export function listAt<T>(from: Fields, key: string, decode: (item: unknown) => T): readonly T[] {
  const raw = from[key];
  if (raw === undefined || raw === null) return nothing;
  if (!Array.isArray(raw)) throw new FieldFault(key, raw, 'an array');
  if (raw.length === 0) return nothing;
  return raw.map((item: unknown, i) => {
    try {
      return decode(item);
    } catch (error) {
      throw error instanceof FieldFault ? error.inside(`${key}[${i}]`) : error;
    }
  });
}

export function stringsAt(
  from: Fields,
  key: string,
  each: (text: string) => string = same,
): readonly string[] {
  return listAt(from, key, (item) => {
    if (typeof item !== 'string') throw new FieldFault('', item, 'a string');
    return each(item);
  });
}

function same(text: string): string {
  return text;
}

/** Label and annotation keys contain dots and slashes: they go in brackets. */
function printKey(key: string): string {
  return /^\w+$/.test(key) ? key : `[${JSON.stringify(key)}]`;
}
