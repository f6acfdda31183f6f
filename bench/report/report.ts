import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Measurement, type Table, tabulate } from './measurement.ts';
import { plot } from './svg.ts';
import { markdownTable } from './text.ts';

/** The machine on which the figures were measured. */
export interface Machine {
  readonly cores: number;
  readonly memoryGB: number;
  readonly kernel: string;
  readonly node: string;
  /** Load average of the minute before the start: figures of a busy machine mean little. */
  readonly load: number;
}

/** How a part ended. */
export interface PartOutcome {
  readonly part: string;
  readonly seconds: number;
  /** What a reader should know about the figures, or why there are none. */
  readonly notes: readonly string[];
  /** Set when the part failed. */
  readonly error?: string;
}

export interface Report {
  readonly started: Date;
  readonly machine: Machine;
  /** The version that the program in `KUBE_PROXY_PEER` prints. */
  readonly peer?: string;
  readonly parts: readonly PartOutcome[];
  readonly measurements: readonly Measurement[];
}

/** Writes JSON, Markdown and plots into a folder; returns their paths. */
export function writeReport(report: Report, directory: string): string[] {
  const base = report.started.toISOString().slice(0, 19).replaceAll(':', '');
  const plots = tabulate(report.measurements).flatMap((table) => {
    const content = plot(table);
    return content === undefined ? [] : [{ table, name: `${base}-${plotName(table)}.svg`, content }];
  });
  const links = new Map(plots.map(({ table, name }) => [plotName(table), name]));
  const files = [
    { name: `${base}.json`, content: `${JSON.stringify(report, undefined, 2)}\n` },
    { name: `${base}.md`, content: markdownReport(report, links) },
    ...plots,
  ];
  mkdirSync(directory, { recursive: true });
  return files.map(({ name, content }) => {
    const path = join(directory, name);
    writeFileSync(path, content);
    return path;
  });
}

/** All tables, each with its plot if it has one. */
export function markdownReport(report: Report, plots: ReadonlyMap<string, string>): string {
  const { cores, memoryGB, kernel, node, load } = report.machine;
  const sections = tabulate(report.measurements).map((table) => {
    const name = plots.get(plotName(table));
    return [markdownTable(table), ...(name ? ['', `![${table.part}: ${table.topic}](${name})`] : [])].join(
      '\n',
    );
  });
  const remarks = report.parts.flatMap(({ part, notes, error }) => [
    ...notes.map((note) => `- ${part}: ${note}`),
    ...(error === undefined ? [] : [`- ${part} **failed**: ${error}`]),
  ]);
  return `${[
    `## Figures of ${report.started.toISOString().slice(0, 10)}`,
    `${cores} cores, ${memoryGB} GB, Linux ${kernel}, Node ${node}, load ${load} at the start.${
      report.peer ? ` The peer is ${report.peer}.` : ''
    }`,
    ...sections,
    ...(remarks.length > 0 ? [remarks.join('\n')] : []),
  ].join('\n\n')}\n`;
}

function plotName({ part, topic }: Table): string {
  return `${part}-${topic}`.replaceAll(/[^a-z0-9]+/gi, '-');
}
