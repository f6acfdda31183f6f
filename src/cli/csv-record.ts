/** The position of a quoting error, and its message. */
interface Fault {
  readonly at: number;
  readonly cause: string;
}

const BARE_QUOTE = 'bare " in non-quoted-field';
const BAD_QUOTE = 'extraneous or missing " in quoted-field';

/**
 * Reads the first record of comma-separated text as Go's encoding/csv does: blank lines are skipped, CRLF counts as LF,
 * double quotes protect commas and line ends. Throws an Error with Go's message.
 */
export function readCsvRecord(text: string): string[] {
  const source = text.replace(/\r\n/g, '\n').replace(/\r$/, '');
  const start = /^\n*/.exec(source)?.[0].length ?? 0;
  if (start === source.length) throw new Error('EOF');
  const fields: string[] = [];
  let at = start;
  for (;;) {
    const { value, end, fault } = source[at] === '"' ? quotedField(source, at) : plainField(source, at);
    if (fault) throw new Error(describe(source, start, fault));
    fields.push(value);
    if (source[end] !== ',') return fields;
    at = end + 1;
  }
}

/** Writes one record as Go's encoding/csv does, without the line end. */
export function writeCsvRecord(fields: readonly string[]): string {
  return fields.map((field) => (needsQuotes(field) ? `"${field.replaceAll('"', '""')}"` : field)).join(',');
}

function plainField(source: string, at: number): { value: string; end: number; fault?: Fault } {
  const length = source.slice(at).search(/[,\n]/);
  const end = length < 0 ? source.length : at + length;
  const value = source.slice(at, end);
  const quote = value.indexOf('"');
  return quote < 0 ? { value, end } : { value, end, fault: { at: at + quote, cause: BARE_QUOTE } };
}

function quotedField(source: string, at: number): { value: string; end: number; fault?: Fault } {
  let value = '';
  let from = at + 1;
  for (;;) {
    const quote = source.indexOf('"', from);
    if (quote < 0) return { value, end: source.length, fault: { at: source.length, cause: BAD_QUOTE } };
    value += source.slice(from, quote);
    const next = source[quote + 1];
    if (next === undefined || next === ',' || next === '\n') return { value, end: quote + 1 };
    if (next !== '"') return { value, end: quote, fault: { at: quote, cause: BAD_QUOTE } };
    value += '"';
    from = quote + 2;
  }
}

function describe(source: string, start: number, { at, cause }: Fault): string {
  // A line end at the end of the text belongs to the line before it.
  const lineStart = source.lastIndexOf('\n', at === source.length ? at - 2 : at - 1) + 1;
  const line = lineOf(source, lineStart);
  const recordLine = lineOf(source, start);
  const column = Buffer.byteLength(source.slice(lineStart, at)) + 1;
  const record = line === recordLine ? '' : `record on line ${recordLine}; `;
  return `${record}parse error on line ${line}, column ${column}: ${cause}`;
}

function lineOf(source: string, at: number): number {
  return source.slice(0, at).split('\n').length;
}

function needsQuotes(field: string): boolean {
  return field === '\\.' || /^\s|[",\r\n]/u.test(field);
}
