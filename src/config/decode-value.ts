import { parseDuration } from '../lib/duration.ts';
import { quote } from '../lib/go-quote.ts';
import { parseQuantity } from '../lib/quantity.ts';
import { messageOf } from '../lib/thrown.ts';
import { ConfigError } from './errors.ts';
import { type Json, type JsonArray, type JsonObject, jsonKind, jsonText } from './json-tree.ts';
import { type MapType, type ScalarType, type StructType, type Type, type Value, zeroOf } from './schema.ts';

/** Upstream stops collecting here, too. */
const MAX_STRICT_ERRORS = 100;

/** A decoded value, and the unknown and repeated fields that a strict decoder would refuse. */
export interface Decoded<T> {
  readonly value: T;
  readonly strictErrors: string[];
}

/** Decodes JSON by a schema. Throws a ConfigError for a value of the wrong type. */
export function decodeValue<T extends StructType>(type: T, json: JsonObject): Decoded<Value<T>> {
  const decoder = new Decoder();
  const value = decoder.decode(type, json, zeroOf(type));
  if (decoder.typeError) throw decoder.typeError;
  return { value: value as Value<T>, strictErrors: [...decoder.strictErrors] };
}

/** The position of a value, in the two forms that upstream's messages use. */
interface Place {
  /** The innermost struct and the field path from the root, without list positions. */
  readonly struct: string;
  readonly field: string;
  /** The path with list positions and map keys. */
  readonly path: string;
}

class Decoder {
  /** The first value of a wrong type. Decoding continues: a malformed duration later on takes precedence. */
  typeError: ConfigError | undefined;
  readonly strictErrors = new Set<string>();

  /** `current` is the value so far, from an earlier occurrence of the field. */
  decode(type: Type, json: Json, current: unknown, place: Place = root): unknown {
    switch (type.kind) {
      case 'nullable':
        return json === null ? null : this.#scalar(type.of, json, current, place);
      case 'struct':
        if (json === null) return current;
        return isObject(json)
          ? this.#struct(type, json, current, place)
          : this.#mismatch(type, json, current, place);
      case 'map':
        if (json === null) return null;
        return isObject(json)
          ? this.#map(type, json, current, place)
          : this.#mismatch(type, json, current, place);
      case 'list':
        if (json === null) return null;
        if (!isArray(json)) return this.#mismatch(type, json, current, place);
        return json.items.map((item, i) =>
          this.decode(type.of, item, zeroOf(type.of), { ...place, path: `${place.path}[${i}]` }),
        );
      default:
        return this.#scalar(type, json, current, place);
    }
  }

  #struct(type: StructType, json: JsonObject, current: unknown, place: Place): unknown {
    const values = new Map(Object.entries(current as Record<string, unknown>));
    const struct = type.go.slice(type.go.indexOf('.') + 1);
    const seen = new Set<string>();
    for (const [name, value] of json.entries) {
      const path = join(place.path, name);
      const field = Object.hasOwn(type.fields, name) ? type.fields[name] : undefined;
      if (!field) {
        this.#strict(`unknown field ${quote(path)}`);
        continue;
      }
      if (seen.has(name)) this.#strict(`duplicate field ${quote(path)}`);
      seen.add(name);
      const inner = { struct, field: join(place.field, name), path };
      values.set(name, this.decode(field.type, value, values.get(name), inner));
    }
    return Object.fromEntries(values);
  }

  #map(type: MapType, json: JsonObject, current: unknown, place: Place): unknown {
    const values = new Map(Object.entries((current ?? {}) as Record<string, unknown>));
    const seen = new Set<string>();
    for (const [name, value] of json.entries) {
      const path = join(place.path, name);
      if (seen.has(name)) this.#strict(`duplicate field ${quote(path)}`);
      seen.add(name);
      values.set(name, this.#scalar(type.of, value, zeroOf(type.of), { ...place, path }));
    }
    return Object.fromEntries(values);
  }

  #scalar(type: ScalarType, json: Json, current: unknown, place: Place): unknown {
    switch (type.kind) {
      case 'duration':
        if (json !== null && typeof json !== 'string') throw mismatch(jsonKind(json), type, place);
        return rethrown(() => parseDuration(json ?? ''));
      case 'nanoseconds':
        return nanosecondsOf(json, type);
      case 'quantity':
        return json === null ? '0' : rethrown(() => parseQuantity(textOf(json).trim()).text);
    }
    if (json === null) return current;
    return plainValue(type, json) ?? this.#mismatch(type, json, current, place);
  }

  #mismatch(type: Exclude<Type, { kind: 'nullable' }>, json: Json, current: unknown, place: Place): unknown {
    this.typeError ??= mismatch(describe(type, json), type, place);
    return current;
  }

  #strict(message: string): void {
    if (this.strictErrors.size < MAX_STRICT_ERRORS) this.strictErrors.add(message);
  }
}

const root: Place = { struct: '', field: '', path: '' };

function join(path: string, name: string): string {
  return path === '' ? name : `${path}.${name}`;
}

/** The value of a string, boolean or number type; undefined when the JSON has another type or is out of range. */
function plainValue(type: ScalarType, json: Json): string | boolean | number | undefined {
  if (typeof json === 'string') return type.kind === 'string' ? json : undefined;
  if (typeof json === 'boolean') return type.kind === 'bool' ? json : undefined;
  if (json === null || json.kind !== 'number') return undefined;
  if (type.kind === 'float32') {
    const value = Math.fround(Number(json.text));
    return Number.isFinite(value) ? value : undefined;
  }
  const range = integerRanges.get(type.kind);
  if (!range?.form.test(json.text)) return undefined;
  const value = Number(json.text);
  return value >= range.min && value <= range.max ? value + 0 : undefined;
}

const integerRanges = new Map<string, { form: RegExp; min: number; max: number }>([
  ['int32', { form: /^-?[0-9]+$/, min: -(2 ** 31), max: 2 ** 31 - 1 }],
  ['uint32', { form: /^[0-9]+$/, min: 0, max: 2 ** 32 - 1 }],
]);

function nanosecondsOf(json: Json, type: ScalarType): bigint | number {
  if (json === null) return 0n;
  if (typeof json === 'string') return rethrown(() => parseDuration(json));
  const text = textOf(json);
  // An int64 has at most 19 digits.
  if (/^-?[0-9]{1,19}$/.test(text)) {
    const value = BigInt(text);
    if (BigInt.asIntN(64, value) === value) return Number(value);
  }
  const kind = jsonKind(json) === 'number' ? `number ${text}` : jsonKind(json);
  throw new ConfigError(
    `invalid duration ${quote(text)}: json: cannot unmarshal ${kind} into Go value of type ${type.go}`,
  );
}

/** The text for a type with its own notation: strings without quotes, other values as JSON. */
function textOf(json: Json): string {
  return typeof json === 'string' ? json : jsonText(json);
}

/** Go shows the digits of a number only when a number was expected. */
function describe(type: Type, json: Json): string {
  const numeric = type.kind === 'int32' || type.kind === 'uint32' || type.kind === 'float32';
  return numeric && jsonKind(json) === 'number' ? `number ${textOf(json)}` : jsonKind(json);
}

function mismatch(found: string, type: { go: string }, { struct, field }: Place): ConfigError {
  return new ConfigError(
    `json: cannot unmarshal ${found} into Go struct field ${struct}.${field} of type ${type.go}`,
  );
}

function rethrown<T>(parse: () => T): T {
  try {
    return parse();
  } catch (error) {
    throw new ConfigError(messageOf(error), { cause: error });
  }
}

function isObject(json: Json): json is JsonObject {
  return typeof json === 'object' && json !== null && json.kind === 'object';
}

function isArray(json: Json): json is JsonArray {
  return typeof json === 'object' && json !== null && json.kind === 'array';
}
