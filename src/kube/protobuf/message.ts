import type { WireReader } from './wire-reader.ts';

/** Reads the current field into an object under construction. */
type ReadField<T> = (reader: WireReader, target: T) => void;

/** The fields of a message that are in use, by their numbers. All others are passed over. */
export type Message<T> = Readonly<Record<number, ReadField<T>>>;

/** A text that most objects have to themselves. */
export function text<K extends string>(name: K): ReadField<Record<K, string>> {
  return (reader, target) => {
    target[name] = reader.text(name);
  };
}

/** A text that repeats across objects. */
export function shared<K extends string>(name: K): ReadField<Record<K, string>> {
  return (reader, target) => {
    target[name] = reader.shared(name);
  };
}

export function texts<K extends string>(name: K): ReadField<Record<K, string[]>> {
  return (reader, target) => {
    const list = target[name];
    list.push(reader.text(name, list.length));
  };
}

export function sharedTexts<K extends string>(name: K): ReadField<Record<K, string[]>> {
  return (reader, target) => {
    const list = target[name];
    list.push(reader.shared(name, list.length));
  };
}

export function integer<K extends string>(name: K, max: number): ReadField<Record<K, number>> {
  return (reader, target) => {
    target[name] = reader.integer(name, max);
  };
}

/** A nested message whose fields belong to the same object. */
export function part<T>(name: string, message: Message<T>): ReadField<T> {
  return (reader, target) => {
    reader.message(name, target, message);
  };
}
