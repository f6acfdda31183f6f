import type { DifferenceReport } from './api.ts';

/** How a line is marked: something is missing, should not be there, or is not as it should be. */
export type Mark = '+' | '-' | '~';

/** Puts colour on a line, or not. */
export type PaintMark = (mark: Mark, line: string) => string;

export const plain: PaintMark = (_mark, line) => line;

/** The differences of one family, by service: what all share first. Empty lines part the services. */
export function differenceLines(
  differences: readonly DifferenceReport[],
  paint: PaintMark = plain,
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
  if (found === undefined) return [paint('+', withDetail(`  + ${name}`, wanted))];
  if (wanted === undefined) return [paint('-', withDetail(`  - ${name}`, found))];
  return [paint('~', `  ~ ${name}`), `      is:     ${found}`, `      should: ${wanted}`];
}

/** An object that is all there is to say need not be repeated. */
function withDetail(line: string, detail: string | undefined): string {
  return detail === undefined || detail === '' || line.endsWith(detail) ? line : `${line}: ${detail}`;
}
