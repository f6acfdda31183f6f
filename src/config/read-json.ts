import { quoteRune } from '../lib/go-quote.ts';
import { ConfigError } from './errors.ts';
import type { Json, JsonArray, JsonObject } from './json-tree.ts';

/** Go's limit, and so upstream's. */
const MAX_DEPTH = 10_000;

/** Reads JSON text. Throws a ConfigError in the words of Go's encoding/json. */
export function readJson(text: string): Json {
  return new JsonReader(text).read();
}

/** An open array or object, and the key of an object's next value. */
interface Frame {
  readonly container: JsonArray | JsonObject;
  key: string;
}

/** Has its own stack instead of recursion: deep nesting gives an error, not a stack overflow. */
class JsonReader {
  readonly #text: string;
  readonly #frames: Frame[] = [];
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  read(): Json {
    for (;;) {
      let value = this.#begin();
      while (value !== undefined) {
        const parent = this.#frames.at(-1);
        if (!parent) return this.#end(value);
        if (parent.container.kind === 'array') parent.container.items.push(value);
        else parent.container.entries.push([parent.key, value]);
        value = this.#continue(parent);
      }
    }
  }

  /** Reads a scalar or an empty container; undefined after opening one that has a first element. */
  #begin(): Json | undefined {
    switch (this.#peek()) {
      case '{':
        return this.#open({ kind: 'object', entries: [] }, '}');
      case '[':
        return this.#open({ kind: 'array', items: [] }, ']');
      case '"':
        return this.#string();
      case 't':
        return this.#literal('true', true);
      case 'f':
        return this.#literal('false', false);
      case 'n':
        return this.#literal('null', null);
      default:
        return { kind: 'number', text: this.#number() };
    }
  }

  #open(container: JsonArray | JsonObject, close: string): Json | undefined {
    if (this.#frames.length >= MAX_DEPTH) throw new ConfigError('exceeded max depth');
    this.#at++;
    if (this.#peek() === close) {
      this.#at++;
      return container;
    }
    const frame = { container, key: '' };
    if (container.kind === 'object') frame.key = this.#key();
    this.#frames.push(frame);
    return undefined;
  }

  /** After an element: undefined when another follows, or the container that ends here. */
  #continue(frame: Frame): Json | undefined {
    const isObject = frame.container.kind === 'object';
    const char = this.#peek();
    if (char === ',') {
      this.#at++;
      if (isObject) frame.key = this.#key();
      return undefined;
    }
    if (char !== (isObject ? '}' : ']')) {
      throw this.#unexpected(isObject ? 'after object key:value pair' : 'after array element');
    }
    this.#at++;
    this.#frames.pop();
    return frame.container;
  }

  #end(value: Json): Json {
    this.#skipSpace();
    if (this.#at < this.#text.length) throw this.#unexpected('after top-level value');
    return value;
  }

  #key(): string {
    if (this.#peek() !== '"') throw this.#unexpected('looking for beginning of object key string');
    const key = this.#string();
    if (this.#peek() !== ':') throw this.#unexpected('after object key');
    this.#at++;
    return key;
  }

  #string(): string {
    let value = '';
    this.#at++;
    for (;;) {
      value += this.#take(/[ !#-[\]-\uffff]*/y);
      const char = this.#text[this.#at];
      if (char !== '"' && char !== '\\') throw this.#unexpected('in string literal');
      this.#at++;
      // UTF-8 cannot encode half a surrogate pair; Go reads it as U+FFFD.
      if (char === '"') return value.toWellFormed();
      value += this.#escape();
    }
  }

  #escape(): string {
    const char = this.#text[this.#at] ?? '';
    if (char !== 'u') {
      const value = escapes.get(char);
      if (value === undefined) throw this.#unexpectedInside('in string escape code');
      this.#at++;
      return value;
    }
    this.#at++;
    const hex = this.#take(/[0-9a-fA-F]{0,4}/y);
    if (hex.length < 4) throw this.#unexpectedInside('in \\u hexadecimal character escape');
    return String.fromCharCode(Number.parseInt(hex, 16));
  }

  #number(): string {
    const start = this.#at;
    const signed = this.#take(/-?/y) !== '';
    if (this.#take(/0|[1-9][0-9]*/y) === '') {
      if (signed) throw this.#unexpectedInside('in numeric literal');
      throw this.#unexpected('looking for beginning of value');
    }
    if (this.#take(/\.?/y) !== '' && this.#take(/[0-9]*/y) === '') {
      throw this.#unexpectedInside('after decimal point in numeric literal');
    }
    if (this.#take(/(?:[eE][-+]?)?/y) !== '' && this.#take(/[0-9]*/y) === '') {
      throw this.#unexpectedInside('in exponent of numeric literal');
    }
    return this.#text.slice(start, this.#at);
  }

  #literal<T>(word: string, value: T): T {
    for (const expected of word) {
      if (this.#text[this.#at] !== expected) {
        throw this.#unexpectedInside(`in literal ${word} (expecting '${expected}')`);
      }
      this.#at++;
    }
    return value;
  }

  #take(pattern: RegExp): string {
    pattern.lastIndex = this.#at;
    const match = pattern.exec(this.#text)?.[0] ?? '';
    this.#at += match.length;
    return match;
  }

  #skipSpace(): void {
    this.#take(/[ \t\r\n]*/y);
  }

  /** The next character that is not white space, left unread; empty at the end. */
  #peek(): string {
    this.#skipSpace();
    return this.#text[this.#at] ?? '';
  }

  #unexpected(where: string): ConfigError {
    const char = this.#text.slice(this.#at, this.#at + 2);
    if (char === '') return new ConfigError('unexpected end of JSON input');
    return new ConfigError(`invalid character ${quoteByte(char)} ${where}`);
  }

  /** Inside a token the end of the text reads as a space to Go. */
  #unexpectedInside(where: string): ConfigError {
    if (this.#at >= this.#text.length) return new ConfigError(`invalid character ' ' ${where}`);
    return this.#unexpected(where);
  }
}

const escapes = new Map([
  ['"', '"'],
  ['\\', '\\'],
  ['/', '/'],
  ['b', '\b'],
  ['f', '\f'],
  ['n', '\n'],
  ['r', '\r'],
  ['t', '\t'],
]);

/** Go looks at bytes: outside ASCII it names the first byte of the UTF-8 form as if that were a character. */
function quoteByte(text: string): string {
  return quoteRune(new TextEncoder().encode(text)[0] ?? 0);
}
