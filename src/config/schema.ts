import type { Duration, Nanoseconds, Quantity } from './types.ts';

/** The TypeScript type of each scalar type. */
interface Scalars {
  string: string;
  bool: boolean;
  int32: number;
  uint32: number;
  float32: number;
  /** A Go duration in a string. */
  duration: Duration;
  /** A Go duration in a string, or a whole number of nanoseconds. */
  nanoseconds: Nanoseconds;
  quantity: Quantity;
}

export interface ScalarType<N extends keyof Scalars = keyof Scalars> {
  readonly kind: N;
  /** The type's name in upstream's error messages. */
  readonly go: string;
}

/** A value that can be null; defaults replace null, but not zero. */
export interface NullableType {
  readonly kind: 'nullable';
  readonly of: ScalarType;
}

/** Null when absent, which differs from empty. */
export interface ListType {
  readonly kind: 'list';
  readonly of: Type;
  readonly go: string;
}

/** A map from names to scalars. */
export interface MapType {
  readonly kind: 'map';
  readonly of: ScalarType;
  readonly go: string;
}

export interface StructType {
  readonly kind: 'struct';
  readonly go: string;
  readonly fields: Readonly<Record<string, Field>>;
}

export type Type = ScalarType | NullableType | ListType | MapType | StructType;

export interface Field<T extends Type = Type> {
  readonly type: T;
  /** Description for the reference page. */
  readonly about: string;
  /** Not written when zero. */
  readonly omitEmpty?: true;
}

/** The TypeScript type of a schema's values. */
export type Value<T> = T extends { kind: keyof Scalars }
  ? Scalars[T['kind']]
  : T extends { kind: 'nullable'; of: infer Of }
    ? Value<Of> | null
    : T extends { kind: 'list'; of: infer Of }
      ? Value<Of>[] | null
      : T extends { kind: 'map'; of: infer Of }
        ? Record<string, Value<Of>> | null
        : T extends { kind: 'struct'; fields: infer Fields }
          ? { -readonly [K in keyof Fields]: Fields[K] extends Field<infer Of> ? Value<Of> : never }
          : never;

export function scalar<N extends keyof Scalars>(kind: N, go: string): ScalarType<N> {
  return { kind, go };
}

export const string = scalar('string', 'string');
export const bool = scalar('bool', 'bool');
export const int32 = scalar('int32', 'int32');
export const float32 = scalar('float32', 'float32');
export const duration = scalar('duration', 'string');
export const nanoseconds = scalar('nanoseconds', 'time.Duration');
export const quantity = scalar('quantity', 'resource.QuantityValue');

export function nullable<T extends ScalarType>(of: T) {
  return { kind: 'nullable', of } as const;
}

export function listOf<T extends Type>(of: T, go: string) {
  return { kind: 'list', of, go } as const;
}

export function mapOf<T extends ScalarType>(of: T) {
  return { kind: 'map', of, go: `map[string]${of.go}` } as const;
}

export function struct<const F extends Readonly<Record<string, Field>>>(go: string, fields: F) {
  return { kind: 'struct', go, fields } as const;
}

export function field<T extends Type>(type: T, about: string): Field<T> {
  return { type, about };
}

/** A field that is not written when zero. */
export function optional<T extends Type>(type: T, about: string): Field<T> {
  return { type, about, omitEmpty: true };
}

/** The zero value of a type. */
export function zeroOf<T extends Type>(type: T): Value<T>;
export function zeroOf(type: Type): unknown {
  switch (type.kind) {
    case 'string':
      return '';
    case 'bool':
      return false;
    case 'int32':
    case 'uint32':
    case 'float32':
      return 0;
    case 'duration':
    case 'nanoseconds':
      return 0n;
    case 'quantity':
      return '0';
    case 'struct':
      return Object.fromEntries(Object.entries(type.fields).map(([name, of]) => [name, zeroOf(of.type)]));
    default:
      return null;
  }
}
