import { readFileSync } from 'node:fs';
import type { Size, TableRow } from '../../bench/report/measurement.ts';
import { plot } from '../../bench/report/svg.ts';

/** Columns of the recorded table that are plotted, with their titles. */
const plotted = [
  { column: 'cold (s)', metric: 'cold start to the first packet', unit: 's' },
  { column: 'replaced p50 / p99 (ms)', metric: 'endpoint replaced, p50', unit: 'ms' },
  { column: 'CPU per change (ms)', metric: 'CPU per change', unit: 'ms' },
];
const programs = new Set(['kube-proxy-ts', 'upstream']);

/** Draws the figures of nftables mode that docs/performance.md records. Throws if the page lacks a column. */
export function performancePlot(path: string): string {
  const [, page = ''] = readFileSync(path, 'utf8').split('\n## The whole program in nftables mode\n');
  const [head = [], , ...lines] = (/^\|.*?\n\n/ms.exec(page)?.[0] ?? '').trim().split('\n').map(cells);
  const columns = plotted.map(({ column }) => {
    const index = head.indexOf(column);
    if (index < 0) throw new Error(`${path} has no column "${column}"`);
    return index;
  });
  let size: Size = { services: 0, endpoints: 0 };
  const rows = lines.flatMap((line): TableRow[] => {
    const [sizeCell = '', program = ''] = line;
    if (sizeCell !== '') size = parseSize(sizeCell);
    const values = columns.map((index) => figure(line[index] ?? ''));
    return programs.has(program) ? [{ size, program, values }] : [];
  });
  const topic = 'cost against services × endpoints, two cores, Linux 6.18';
  return plot({ part: 'nftables mode', topic, columns: plotted, rows }) ?? '';
}

function cells(line: string): string[] {
  return line
    .slice(1, -1)
    .split('|')
    .map((cell) => cell.trim());
}

function parseSize(text: string): Size {
  const [services = 0, endpoints = 0] = text.replaceAll(',', '').split(' × ').map(Number);
  return { services, endpoints };
}

/** Reads `p50 / p99` as p50, and `user + system` as their sum. */
function figure(cell: string): number | undefined {
  const terms = (cell.split(' / ')[0] ?? '').split(' + ').filter((term) => term !== '');
  return terms.length === 0 ? undefined : terms.reduce((sum, term) => sum + Number(term), 0);
}
