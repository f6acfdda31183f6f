import { shortestFloat32 } from '../lib/go-float.ts';
import { quote } from '../lib/go-quote.ts';

const trueWords = ['1', 't', 'T', 'true', 'TRUE', 'True'];
const falseWords = ['0', 'f', 'F', 'false', 'FALSE', 'False'];

const digits = '[0-9](?:_?[0-9])*';
const decimalLiteral = new RegExp(
  `^[+-]?(?:${digits}(?:\\.(?:${digits})?)?|\\.${digits})(?:[eE][+-]?${digits})?$`,
);

/** Parses Go's boolean words. Like all parsers here it throws an Error with the text of Go's strconv package. */
export function parseBool(text: string): boolean {
  if (trueWords.includes(text)) return true;
  if (falseWords.includes(text)) return false;
  throw syntaxError('ParseBool', text);
}

/** Parses a signed 32-bit integer in any Go notation: `0x1F`, `0o17`, `017`, `0b11`, `1_000`. */
export function parseInt32(text: string): number {
  const [, sign, unsigned = ''] = /^([+-]?)(.*)$/s.exec(text) ?? [];
  const literal = integerLiteral(unsigned);
  if (literal === undefined) throw syntaxError('ParseInt', text);
  const value = sign === '-' ? -BigInt(literal) : BigInt(literal);
  if (BigInt.asIntN(32, value) !== value) throw rangeError('ParseInt', text);
  return Number(value);
}

/** Parses an unsigned decimal below 2^31, such as a log verbosity. */
export function parseUint31(text: string): number {
  if (!/^[0-9]+$/.test(text)) throw syntaxError('ParseUint', text);
  const value = BigInt(text);
  if (value >= 1n << 31n) throw rangeError('ParseUint', text);
  return Number(value);
}

/** Parses a decimal number, rounded to 32 bits and kept as the shortest decimal: it prints as it was written. */
export function parseFloat32(text: string): number {
  if (!decimalLiteral.test(text)) throw syntaxError('ParseFloat', text);
  const value = Math.fround(Number(text.replaceAll('_', '')));
  if (!Number.isFinite(value)) throw rangeError('ParseFloat', text);
  return shortestFloat32(value);
}

/** Converts a Go integer literal to a notation that BigInt reads; undefined when it is invalid. */
function integerLiteral(text: string): string | undefined {
  const plain = text.replaceAll('_', '').toLowerCase();
  if (/^0(x(_?[0-9a-f])+|o(_?[0-7])+|b(_?[01])+)$/i.test(text)) return plain;
  if (/^[1-9](_?[0-9])*$/.test(text)) return plain;
  return /^0(_?[0-7])*$/.test(text) ? `0o0${plain}` : undefined;
}

function syntaxError(parser: string, text: string): Error {
  return new Error(`strconv.${parser}: parsing ${quote(text)}: invalid syntax`);
}

function rangeError(parser: string, text: string): Error {
  return new Error(`strconv.${parser}: parsing ${quote(text)}: value out of range`);
}
