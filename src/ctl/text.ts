import { stripVTControlCharacters } from 'node:util';
import { wrap } from '../lib/wrap.ts';

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

/** The two largest units of a time span: `3d4h`, `5m10s`, `2s`, `20ms`. */
export function spanText(ms: number): string {
  if (ms < 1000) return `${Math.max(0, Math.round(ms))}ms`;
  const seconds = Math.floor(ms / 1000);
  const units: [number, string][] = [
    [Math.floor(seconds / 86_400), 'd'],
    [Math.floor(seconds / 3600) % 24, 'h'],
    [Math.floor(seconds / 60) % 60, 'm'],
    [seconds % 60, 's'],
  ];
  const first = units.findIndex(([n]) => n > 0);
  const shown = units.slice(first, first + 2).filter(([n]) => n > 0);
  return shown.map(([n, unit]) => `${n}${unit}`).join('');
}

export function agoText(time: string, now: string): string {
  return `${spanText(Date.parse(now) - Date.parse(time))} ago`;
}

/** `33.3 %`. */
export function percentText(share: number): string {
  return `${(share * 100).toFixed(1)} %`;
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
