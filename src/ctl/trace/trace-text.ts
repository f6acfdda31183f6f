import type { Outcome, TracedConnection, TraceReport } from '../../trace/report.ts';
import { gapsIn, type Story, storiesIn, summaryOf } from '../../trace/trace-words.ts';
import type { Layout } from '../table.ts';
import type { Paint, Style } from '../terminal.ts';
import { fieldsText } from '../text.ts';

const styles: Readonly<Record<Outcome, Style>> = {
  answered: 'green',
  delivered: 'yellow',
  incomplete: 'yellow',
  refused: 'red',
  unanswered: 'red',
  dropped: 'red',
  rejected: 'red',
  lost: 'red',
};

/** One story for connections that went the same way; what went wrong comes first. With -o wide, with every step. */
export function traceText(report: TraceReport, paint: Paint, layout: Layout): string {
  const stories = storiesIn(report).map((story) => storyText(story, paint, layout));
  return [...stories, endText(report, paint)].join('\n');
}

function storyText({ first, headline, ways, fields, all }: Story, paint: Paint, layout: Layout): string {
  return [
    `${paint(styles[first.outcome], headline)}\n`,
    ...ways.map((way) => `  ${way}\n`),
    fieldsText(fields, layout.width),
    ...(layout.isWide ? all.flatMap(stepsText) : []),
  ].join('');
}

function stepsText({ source, destination, steps }: TracedConnection): string[] {
  return [`  steps of ${source} → ${destination}\n`, ...steps.map((step) => `    ${step}\n`)];
}

function endText(report: TraceReport, paint: Paint): string {
  const summary = summaryOf(report, 'as many as --packets allows');
  const gaps = gapsIn(report).map((text) => paint('yellow', text));
  return [summary, ...gaps, ...report.notShown].map((line) => `${line}\n`).join('');
}
