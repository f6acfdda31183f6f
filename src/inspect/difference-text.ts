import type { DifferenceReport } from './api.ts';

/** The object is missing, should not be there, or differs. */
export type Mark = '+' | '-' | '~';

/** Colours a line. */
export type PaintMark = (mark: Mark, line: string) => string;

/** The differences of one family, grouped by service, shared objects first. An empty line separates groups. */
export function differenceLines(
  differences: readonly DifferenceReport[],
  paint: PaintMark = (_mark, line) => line,
): string[] {
  const byService = Map.groupBy(differences, ({ service }) => service ?? '');
  const groups = [...byService].sort(([a], [b]) => (a < b ? -1 : 1));
  return groups.flatMap(([service, members], i) => [
    ...(i > 0 ? [''] : []),
    service === '' ? 'shared by all services' : service,
    ...members.flatMap((difference) => linesOf(difference, paint)),
  ]);
}

function linesOf({ kind, object, wanted, found }: DifferenceReport, paint: PaintMark): string[] {
  const name = `${kind} ${object}`;
  if (found === undefined) return lone('+', name, wanted, paint);
  if (wanted === undefined) return lone('-', name, found, paint);
  return [paint('~', `  ~ ${name}`), ...labelled('is:     ', found), ...labelled('should: ', wanted)];
}

/** An object on one side only. Its detail follows the name, or comes below when it has several lines. */
function lone(mark: Mark, name: string, detail: string | undefined, paint: PaintMark): string[] {
  const line = `  ${mark} ${name}`;
  if (detail === undefined || ['', 'present'].includes(detail) || name.endsWith(detail)) {
    return [paint(mark, line)];
  }
  if (!detail.includes('\n')) return [paint(mark, `${line}: ${detail}`)];
  return [paint(mark, line), ...labelled('', detail)];
}

function labelled(label: string, text: string): string[] {
  const [first = '', ...rest] = text.split('\n');
  return [`      ${label}${first}`, ...rest.map((line) => `      ${' '.repeat(label.length)}${line}`)];
}
