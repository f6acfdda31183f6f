import { harmless } from './terminal.ts';
import { cut, widthOf } from './text.ts';

/** One column of a table of items. */
export interface Column<T> {
  readonly heading: string;
  readonly cell: (item: T) => string;
  /** Shown only with -o wide. */
  readonly isExtra?: boolean;
  /** When a terminal is too narrow, this column is cut to no less than this width. */
  readonly least?: number;
  /** When that is not enough, columns with this are left out, the lowest first. */
  readonly leaveOut?: number;
}

/** How much of a table is shown. */
export interface Layout {
  /** Columns of the terminal; undefined where nothing is cut: in a pipe and with -o wide. */
  readonly width: number | undefined;
  /** With the extra columns. */
  readonly isWide: boolean;
}

export const unlimited: Layout = { width: undefined, isWide: false };

/** A table whose columns fit the layout. */
export interface FittedTable<T> {
  /** The headings, as a line. */
  readonly head: string;
  line(item: T): string;
  /** The headings that did not fit. */
  readonly leftOut: readonly string[];
  /** The width that each column needs, by its heading. */
  readonly needs: ReadonlyMap<string, number>;
}

/** The narrowest cell that is still worth a column. */
const NARROWEST = 8;
const GAP = 2;

/** Chooses the columns, and their widths, for these items; and for earlier ones, which needed widths `before`. */
export function fitTable<T>(
  columns: readonly Column<T>[],
  items: readonly T[],
  { width, isWide }: Layout,
  before: ReadonlyMap<string, number> = new Map(),
): FittedTable<T> {
  const wanted = columns
    .filter(({ isExtra }) => isWide || !isExtra)
    .map((column) => measure(column, items, before.get(column.heading) ?? 0));
  const shown = width === undefined ? wanted : squeeze(wanted, width);
  const lineOf = (cellOf: (column: Column<T>) => string) =>
    shown
      .map(({ column, size }) => pad(cut(harmless(cellOf(column)), size), size))
      .join(' '.repeat(GAP))
      .trimEnd();
  return {
    head: lineOf(({ heading }) => heading),
    line: (item) => lineOf(({ cell }) => cell(item)),
    leftOut: wanted
      .filter(({ column }) => !shown.some((one) => one.column === column))
      .map(({ column }) => column.heading),
    needs: new Map(wanted.map(({ column, size }) => [column.heading, size])),
  };
}

/** Headings and a line per item; then the headings that did not fit. */
export function itemsText<T>(
  columns: readonly Column<T>[],
  items: readonly T[],
  layout: Layout = unlimited,
): string {
  const table = fitTable(columns, items, layout);
  const lines = [table.head, ...items.map(table.line), ...leftOutNote(table)];
  return `${lines.join('\n')}\n`;
}

/** A line about columns that did not fit; none when all did. */
export function leftOutNote({ leftOut }: Pick<FittedTable<unknown>, 'leftOut'>): string[] {
  return leftOut.length === 0 ? [] : [`(-o wide also shows ${leftOut.join(', ')})`];
}

interface Sized<T> {
  readonly column: Column<T>;
  readonly size: number;
  /** Every cell is a dash. */
  readonly isBlank: boolean;
}

function measure<T>(column: Column<T>, items: readonly T[], least: number): Sized<T> {
  let size = Math.max(column.heading.length, least);
  let isBlank = true;
  for (const item of items) {
    const cell = harmless(column.cell(item));
    size = Math.max(size, widthOf(cell));
    isBlank &&= cell === '-';
  }
  return { column, size, isBlank };
}

/** Leaves out blank columns, cuts columns that may be cut, leaves out further columns, then cuts whatever is widest. */
function squeeze<T>(columns: readonly Sized<T>[], width: number): readonly Sized<T>[] {
  if (totalOf(columns) <= width) return columns;
  const blank = columns.find(({ column, isBlank }) => isBlank && column.leaveOut !== undefined);
  if (blank) {
    return squeeze(
      columns.filter((one) => one !== blank),
      width,
    );
  }
  const cutColumns = shorten(columns, width, ({ least }) => least);
  if (totalOf(cutColumns) <= width) return cutColumns;
  const order = columns.filter(({ column }) => column.leaveOut !== undefined);
  const [first] = order.sort((a, b) => (a.column.leaveOut ?? 0) - (b.column.leaveOut ?? 0));
  if (first)
    return squeeze(
      columns.filter((one) => one !== first),
      width,
    );
  return shorten(cutColumns, width, () => NARROWEST);
}

/** Makes the widest columns narrower until the table fits; `leastOf` returns how narrow a column may get. */
function shorten<T>(
  columns: readonly Sized<T>[],
  width: number,
  leastOf: (column: Column<T>) => number | undefined,
): readonly Sized<T>[] {
  let sized = columns;
  for (let surplus = totalOf(sized) - width; surplus > 0; surplus = totalOf(sized) - width) {
    const room = ({ column, size }: Sized<T>) => size - (leastOf(column) ?? size);
    const [widest] = sized.filter((one) => room(one) > 0).sort((a, b) => b.size - a.size);
    if (!widest) return sized;
    // One column at a time, so that two wide ones end up equally wide.
    sized = sized.map((one) => (one === widest ? { ...one, size: one.size - 1 } : one));
  }
  return sized;
}

function totalOf(columns: readonly { readonly size: number }[]): number {
  return columns.reduce((sum, { size }) => sum + size, 0) + GAP * (columns.length - 1);
}

function pad(text: string, width: number): string {
  return text + ' '.repeat(Math.max(0, width - widthOf(text)));
}
