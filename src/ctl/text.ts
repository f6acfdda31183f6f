import { stripVTControlCharacters } from 'node:util';
import { wrap } from '../lib/wrap.ts';

export { agoText, percentText, spanText } from '../lib/quantity-text.ts';

/** Rows under headings, each column as wide as its widest cell. */
export function tableText(headings: readonly string[], rows: readonly (readonly string[])[]): string {
  const all = [headings, ...rows];
  const widths = headings.map((_, i) => Math.max(...all.map((row) => widthOf(row[i] ?? ''))));
  const lines = all.map((row) =>
    row
      .map((cell, i) => pad(cell, widths[i] ?? 0))
      .join('  ')
      .trimEnd(),
  );
  return `${lines.join('\n')}\n`;
}

/** One line per label and value, wrapped at a width if there is one; leaves out labels without a value. */
export function fieldsText(
  fields: readonly (readonly [label: string, value: string | undefined])[],
  width?: number,
): string {
  const shown = fields.filter(([, value]) => value !== undefined && value !== '');
  const column = Math.max(0, ...shown.map(([label]) => label.length)) + 4;
  const lines = shown.flatMap(([label, value = '']) =>
    wrap(value, (width ?? 0) - column).map((text, i) => (i === 0 ? `  ${label}` : '').padEnd(column) + text),
  );
  return lines.map((line) => `${line}\n`).join('');
}

function pad(text: string, width: number): string {
  return text + ' '.repeat(Math.max(0, width - widthOf(text)));
}

/** The columns that a text takes on a terminal, without its colours. */
export function widthOf(text: string): number {
  return stripVTControlCharacters(text).length;
}

/** Shortens a text to a width, with … for what is missing; keeps the colour of a text that is painted as a whole. */
export function cut(text: string, width: number): string {
  if (widthOf(text) <= width) return text;
  const plain = stripVTControlCharacters(text);
  return text.replace(plain, () => `${plain.slice(0, width - 1)}…`);
}
