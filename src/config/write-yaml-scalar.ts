import { resolvePlain } from './yaml-scalar.ts';

/** The position of a scalar: `column` of its first character, `indent` of its further lines. */
export interface ScalarPlace {
  readonly indent: number;
  readonly column: number;
  /** Keys must stay on one line. */
  readonly isKey: boolean;
}

/** A line that is longer is broken at the next space. */
const WIDTH = 80;

/**
 * Writes a string as the YAML emitter of Kubernetes does: plain if it reads back as that string, in double quotes if it
 * would read as another type, in single quotes if it contains YAML syntax, as a literal block if it has several lines.
 */
export function writeScalar(text: string, place: ScalarPlace): string {
  const traits = analyse(text);
  if (text.includes('\n')) {
    return traits.blockAllowed && !place.isKey ? literal(text, place.indent) : doubleQuoted(text, place);
  }
  const readsAsString = resolvePlain(text).type === 'string' && !base60.test(text);
  if (!readsAsString || !traits.singleQuotedAllowed) return doubleQuoted(text, place);
  return traits.plainAllowed ? folded(text, place) : singleQuoted(text, place);
}

/** Numbers in base 60 for some readers. */
const base60 = /^[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?$/;
const lineBreaks = '\n\r\u0085\u2028\u2029';
/** Characters that the emitter does not escape; none outside the basic multilingual plane. */
const printable = /^[\n\x20-\x7e\u00a0-\ud7ff\ue000-\ufefe\uff00-\ufffd]$/;

interface Traits {
  readonly plainAllowed: boolean;
  readonly singleQuotedAllowed: boolean;
  readonly blockAllowed: boolean;
}

function analyse(text: string): Traits {
  const special = [...text].some((char) => !printable.test(char));
  const spaceBreak = new RegExp(` [${lineBreaks}]`).test(text);
  const breakSpace = new RegExp(`[${lineBreaks}] `).test(text);
  const edges = new RegExp(`^[ ${lineBreaks}]|[ ${lineBreaks}]$`).test(text);
  const hasBreak = new RegExp(`[${lineBreaks}]`).test(text);
  const anySpecial = special || spaceBreak;
  return {
    plainAllowed: !(anySpecial || breakSpace || edges || hasBreak || hasIndicator(text)),
    singleQuotedAllowed: !(anySpecial || breakSpace),
    blockAllowed: !(anySpecial || text.endsWith(' ')),
  };
}

/** Whether the text contains YAML syntax. */
function hasIndicator(text: string): boolean {
  return (
    /^(?:---|\.\.\.)/.test(text) ||
    /^[#,[\]{}&*!|>'"%@`]/.test(text) ||
    /^[-?:](?:[ \t]|$)/.test(text) ||
    /:(?:[ \t]|$)/.test(text) ||
    /[ \t]#/.test(text)
  );
}

function literal(text: string, indent: number): string {
  const margin = ' '.repeat(indent);
  const startHint = /^[ \n]/.test(text) ? '2' : '';
  const endHint = !text.endsWith('\n') ? '-' : text.endsWith('\n\n') || text === '\n' ? '+' : '';
  const lines = text.replace(/\n$/, '').split('\n');
  return [`|${startHint}${endHint}`, ...lines.map((line) => (line === '' ? '' : margin + line))].join('\n');
}

/** Plain text, broken at single spaces after the width. */
function folded(text: string, place: ScalarPlace): string {
  return fold([...text], place, 0, (chars, i) => chars[i + 1] !== ' ');
}

function singleQuoted(text: string, place: ScalarPlace): string {
  const chars = [...text].map((char) => (char === "'" ? "''" : char));
  const body = fold(chars, place, 1, (all, i) => i > 0 && i < all.length - 1 && all[i + 1] !== ' ');
  return `'${body}'`;
}

function doubleQuoted(text: string, place: ScalarPlace): string {
  const chars = [...text].map(escaped);
  return `"${fold(chars, place, 1, (all, i) => i > 0 && i < all.length - 1, '\\')}"`;
}

/**
 * Joins characters and replaces spaces beyond the width by line breaks where `breakable` allows it. Writes `guard`
 * before a space at the start of a line, which would otherwise be lost.
 */
function fold(
  chars: readonly string[],
  place: ScalarPlace,
  quoteWidth: number,
  breakable: (chars: readonly string[], i: number) => boolean,
  guard = '',
): string {
  let out = '';
  let column = place.column + quoteWidth;
  for (const [i, char] of chars.entries()) {
    const afterSpace = chars[i - 1] === ' ';
    if (char === ' ' && !afterSpace && !place.isKey && column > WIDTH && breakable(chars, i)) {
      out += `\n${' '.repeat(place.indent)}${chars[i + 1] === ' ' ? guard : ''}`;
      column = place.indent;
    } else {
      out += char;
      column += char.length;
    }
  }
  return out;
}

const escapes = new Map([
  ['\0', '\\0'],
  ['\x07', '\\a'],
  ['\b', '\\b'],
  ['\t', '\\t'],
  ['\n', '\\n'],
  ['\v', '\\v'],
  ['\f', '\\f'],
  ['\r', '\\r'],
  ['\x1b', '\\e'],
  ['"', '\\"'],
  ['\\', '\\\\'],
  ['\u0085', '\\N'],
  ['\u2028', '\\L'],
  ['\u2029', '\\P'],
]);

function escaped(char: string): string {
  const named = escapes.get(char);
  if (named) return named;
  if (printable.test(char)) return char;
  const code = char.codePointAt(0) ?? 0;
  const hex = code.toString(16).toUpperCase();
  if (code <= 0xff) return `\\x${hex.padStart(2, '0')}`;
  return code <= 0xffff ? `\\u${hex.padStart(4, '0')}` : `\\U${hex.padStart(8, '0')}`;
}
