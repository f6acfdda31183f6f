import type { AttributeMap } from '../../netlink/attribute-map.ts';
import type { MessageWriter } from '../../netlink/writer.ts';
import { nameOf } from '../../numbers.ts';
import { bitsOf, namesOf } from '../constants.ts';
import type { Register } from '../expr.ts';
import { readValue, registerWord, writeRegister, writeValue } from './data.ts';

/** How one property of an expression is written to, and read from, the attribute of a given type. */
export interface Property<V> {
  write(writer: MessageWriter, value: V): void;
  /** Undefined when the attribute is missing or has a value that the property cannot express. */
  read(attributes: AttributeMap): V | undefined;
  /** The expression may lack the property. */
  readonly isOptional?: boolean;
  /** Written when the expression lacks the property; left out when read. */
  readonly fallback?: V;
}

export function optional<V>(property: Property<V>): Property<V> {
  return { ...property, isOptional: true };
}

export function u32(type: number): Property<number> {
  return { write: (writer, value) => writer.u32Be(type, value), read: (a) => a.u32Be(type) };
}

export function u64(type: number): Property<bigint> {
  return { write: (writer, value) => writer.u64Be(type, value), read: (a) => a.u64Be(type) };
}

export function text(type: number): Property<string> {
  return { write: (writer, value) => writer.string(type, value), read: (a) => a.string(type) };
}

export function register(type: number): Property<Register> {
  return {
    write: (writer, value) => writeRegister(writer, type, value),
    read: (a) => registerWord(a.u32Be(type)),
  };
}

/** Bytes in a nested attribute. */
export function value(type: number): Property<Uint8Array> {
  return {
    write: (writer, bytes) => writeValue(writer, type, bytes),
    read: (a) => readValue(a.nested(type)),
  };
}

/** A name, sent as its number in a table. */
export function named<K extends string>(type: number, numbers: Readonly<Record<K, number>>): Property<K> {
  return {
    write: (writer, name) => writer.u32Be(type, numbers[name]),
    read: (a) => nameOf(numbers, a.u32Be(type)),
  };
}

/** Names, sent as bits of one word. */
export function flags<K extends string>(
  type: number,
  bits: Readonly<Record<K, number>>,
): Property<readonly K[]> {
  return {
    write: (writer, names) => writer.u32Be(type, bitsOf(bits, names)),
    read: (a) => {
      const word = a.u32Be(type);
      return word === undefined ? undefined : namesOf(bits, word);
    },
  };
}

/** As `flags`, but a property without names is neither written nor read. */
export function optionalFlags<K extends string>(
  type: number,
  bits: Readonly<Record<K, number>>,
): Property<readonly K[]> {
  const all = flags(type, bits);
  return {
    isOptional: true,
    write: (writer, names) => {
      if (names.length > 0) all.write(writer, names);
    },
    read: (a) => {
      const names = all.read(a);
      return names?.length === 0 ? undefined : names;
    },
  };
}
