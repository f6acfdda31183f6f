/** Services, and endpoints of each. */
export interface Size {
  readonly services: number;
  readonly endpoints: number;
}

/** One figure of one program. */
export interface Measurement {
  /** The part of the benchmark: `nftables`, `startup`, … */
  readonly part: string;
  /** Which table of the part it belongs to. */
  readonly topic: string;
  readonly program: string;
  /** Undefined where size plays no role. */
  readonly size?: Size;
  readonly metric: string;
  /** Empty for a plain number. */
  readonly unit: string;
  readonly value: number;
}

/** Figures of one table: a row for every size and program, a column for every metric. */
export interface Table {
  readonly part: string;
  readonly topic: string;
  readonly columns: readonly Column[];
  readonly rows: readonly TableRow[];
}

export interface Column {
  readonly metric: string;
  readonly unit: string;
}

export interface TableRow {
  readonly size?: Size;
  readonly program: string;
  /** In the order of the columns; undefined where the program has no such figure. */
  readonly values: readonly (number | undefined)[];
}

/** What the figures of one row have in common. */
export type Subject = Pick<Measurement, 'part' | 'topic' | 'program' | 'size'>;

/** Figures of one row: the value and its unit by the metric's name. */
export function measurements(
  subject: Subject,
  figures: Readonly<Record<string, readonly [value: number, unit: string]>>,
): Measurement[] {
  return Object.entries(figures).map(([metric, [value, unit]]) => ({ ...subject, metric, unit, value }));
}

/** Groups figures into tables. Tables, rows and columns are in the order of their first figures. */
export function tabulate(all: readonly Measurement[]): Table[] {
  const topics = Map.groupBy(all, ({ part, topic }) => JSON.stringify([part, topic]));
  return [...topics.values()].map(tableOf);
}

function tableOf(figures: readonly Measurement[]): Table {
  const columns = [...Map.groupBy(figures, ({ metric, unit }) => heading({ metric, unit })).values()].flatMap(
    ([first]) => (first ? [{ metric: first.metric, unit: first.unit }] : []),
  );
  const rows = Map.groupBy(figures, ({ size, program }) => JSON.stringify([size, program]));
  return {
    part: figures[0]?.part ?? '',
    topic: figures[0]?.topic ?? '',
    columns,
    rows: [...rows.values()].map((row) => rowOf(row, columns)),
  };
}

function rowOf(figures: readonly Measurement[], columns: readonly Column[]): TableRow {
  const size = figures[0]?.size;
  return {
    ...(size && { size }),
    program: figures[0]?.program ?? '',
    values: columns.map(
      (column) => figures.find(({ metric, unit }) => metric === column.metric && unit === column.unit)?.value,
    ),
  };
}

export function heading({ metric, unit }: Column): string {
  return unit ? `${metric} (${unit})` : metric;
}

export function sizeText({ services, endpoints }: Size): string {
  return `${services.toLocaleString('en')} × ${endpoints.toLocaleString('en')}`;
}

/** Formats a figure with three significant digits. */
export function valueText(value: number | undefined): string {
  if (value === undefined || !Number.isFinite(value)) return '';
  const magnitude = Math.abs(value);
  if (magnitude >= 100 || Number.isInteger(value)) return value.toFixed(0);
  return value.toFixed(magnitude >= 10 ? 1 : 2);
}
