import type { Duration, Nanoseconds, Quantity } from './types.ts';

/** What the values of each scalar type are in the program. */
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

/** A value that can be null; unlike zero, null is what defaulting replaces. */
export interface NullableType {
  readonly kind: 'nullable';
  readonly of: ScalarType;
}

/** Absent and empty lists differ, so a list can be null. */
export interface ListType {
  readonly kind: 'list';
  readonly of: Type;
  readonly go: string;
}

/** Names to scalars. */
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
  /** What the field is for, in a line of the reference page. */
  readonly about: string;
  /** Left out of the output while it has its zero value. */
  readonly omitEmpty?: true;
}

/** The TypeScript type of what a schema describes. */
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

/** A field that is written only when it says something. */
export function optional<T extends Type>(type: T, about: string): Field<T> {
  return { type, about, omitEmpty: true };
}

/** What a field is before anything is read into it. */
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
