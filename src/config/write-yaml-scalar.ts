import { resolvePlain } from './yaml-scalar.ts';

/** Where a scalar stands: `indent` for its further lines, `column` for its first character. */
export interface ScalarPlace {
  readonly indent: number;
  readonly column: number;
  /** Keys must stay on one line. */
  readonly isKey: boolean;
}

/** A line that is already longer is broken at the next space. */
const WIDTH = 80;

/**
 * A string in the style and with the line breaks of the YAML emitter behind Kubernetes: plain when it reads back as
 * that string, double quotes when it would read as another type, single quotes when it holds YAML syntax, a literal
 * block when it has several lines.
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

/** Other readers take these for numbers in base 60. */
const base60 = /^[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?$/;
const lineBreaks = '\n\r\u0085\u2028\u2029';
/** What the emitter prints as it is; outside the basic plane it prints nothing so. */
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

/** Whether the text holds characters that would mean something to a YAML reader. */
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

/** Plain text, broken after the width at single spaces. */
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
 * Joins characters, turning a space beyond the width into a line break where `breakable` allows. A space at the
 * start of the new line would be lost, so it gets `guard` in front.
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
