import { quote } from '../lib/go-quote.ts';
import { wrap } from '../lib/wrap.ts';
import type { Flag } from './flag-set.ts';

type ShownFlag = Pick<
  Flag<never>,
  'name' | 'shorthand' | 'typeName' | 'noOptDefault' | 'defaultText' | 'help'
>;

/** In fewer columns the description is under its flag instead of beside it. */
const SIDE_BY_SIDE = 120;
const UNDER_INDENT = 10;

/** The column in which descriptions begin beside these flags. */
export function descriptionColumn(flags: readonly ShownFlag[]): number {
  return Math.max(...flags.map((flag) => flagHeading(flag).length)) + 2;
}

/**
 * A flag in a help text, wrapped at a width. Without a width, for example in a pipe, it is on one line, for grep.
 */
export function flagLines(flag: ShownFlag, column: number, width: number | undefined): string[] {
  const heading = flagHeading(flag);
  const words = flag.help + defaultNote(flag);
  const beside = width === undefined || width >= SIDE_BY_SIDE;
  const indent = ' '.repeat(beside ? column : UNDER_INDENT);
  const text = wrap(words, (width ?? 0) - indent.length);
  if (!beside) return [heading, ...text.map((line) => indent + line)];
  return text.map((line, i) => (i === 0 ? heading.padEnd(column) : indent) + line);
}

/** `  -v, --v Level`: the name, and the type unless it is a boolean. */
function flagHeading({ name, shorthand, typeName, noOptDefault }: ShownFlag): string {
  const short = shorthand === undefined ? '      ' : `  -${shorthand}, `;
  if (typeName === 'bool') return `${short}--${name}`;
  return `${short}--${name} ${typeName}${noOptDefault === undefined ? '' : `[=${noOptDefault}]`}`;
}

/** Defaults that are the zero value of their type are left out. */
function defaultNote({ typeName, defaultText }: ShownFlag): string {
  if (['', '0', '0s', '[]', 'false'].includes(defaultText)) return '';
  return ` (default ${typeName === 'string' ? quote(defaultText) : defaultText})`;
}
