import { heading, sizeText, type Table, valueText } from './measurement.ts';

/** A table for a terminal: columns aligned, figures to the right. */
export function textTable(table: Table): string {
  const lines = cells(table);
  const widths = (lines[0] ?? []).map((_, i) => Math.max(...lines.map((line) => line[i]?.length ?? 0)));
  const names = namedColumns(table);
  const body = lines.map((line) =>
    line
      .map((cell, i) => (i < names ? cell.padEnd(widths[i] ?? 0) : cell.padStart(widths[i] ?? 0)))
      .join('  ')
      .trimEnd(),
  );
  return [`${table.part}: ${table.topic}`, ...body].join('\n');
}

/** The same table in Markdown, under a heading of its own. */
export function markdownTable(table: Table): string {
  const [head = [], ...rows] = cells(table);
  const names = namedColumns(table);
  return [
    `### ${table.part}: ${table.topic}`,
    '',
    markdownLine(head),
    markdownLine(head.map((_, i) => (i < names ? '---' : '---:'))),
    ...rows.map(markdownLine),
  ].join('\n');
}

/** Size and program; the size only where there is one. */
function namedColumns(table: Table): number {
  return table.rows.some(({ size }) => size) ? 2 : 1;
}

function cells(table: Table): string[][] {
  const hasSizes = namedColumns(table) === 2;
  return [
    [...(hasSizes ? ['services × endpoints'] : []), 'program', ...table.columns.map(heading)],
    ...table.rows.map(({ size, program, values }) => [
      ...(hasSizes ? [size ? sizeText(size) : ''] : []),
      program,
      ...values.map(valueText),
    ]),
  ];
}

function markdownLine(line: readonly string[]): string {
  return `| ${line.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`;
}
