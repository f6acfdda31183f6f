import { count } from '../../lib/count.ts';
import { spanText } from '../../lib/quantity-text.ts';
import type { Outcome, TracedConnection, TraceReport } from '../../trace/report.ts';
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

/** Whether nothing is known to have gone wrong. */
export function isFine({ outcome }: TracedConnection): boolean {
  return outcome === 'answered' || outcome === 'delivered';
}

/** One story for connections that went the same way; what went wrong comes first. With -o wide, with every step. */
export function traceText(report: TraceReport, paint: Paint, layout: Layout): string {
  const groups = [...Map.groupBy(report.connections, groupOf).values()];
  const stories = groups
    .sort(([a], [b]) => rank(a) - rank(b))
    .map((group) => storyText(group, paint, layout));
  return [...stories, endText(report, paint)].join('\n');
}

function groupOf({ verdict, service, destination, protocol }: TracedConnection): string {
  return [verdict, service, destination, protocol].join('\n');
}

function rank(connection: TracedConnection | undefined): number {
  return connection && isFine(connection) ? 1 : 0;
}

function storyText(group: readonly TracedConnection[], paint: Paint, layout: Layout): string {
  const [first] = group;
  if (!first) return '';
  const isAlone = group.length === 1;
  const headline = isAlone ? first.headline : `${count(group.length, 'connection')}: ${first.verdict}`;
  const others = isAlone ? [] : group.map((one) => `  ${one.headline.slice(one.verdict.length + 2)}\n`);
  const steps = layout.isWide ? group.flatMap(stepsText) : [];
  return [
    `${paint(styles[first.outcome], headline)}\n`,
    ...others,
    fieldsText(fieldsOf(first, isAlone), layout.width),
    ...steps,
  ].join('');
}

function fieldsOf(
  { entered, service, destination, endpoint, masqueradedAs, passed, left, reasons }: TracedConnection,
  isAlone: boolean,
): [string, string | undefined][] {
  const chains = passed
    .filter((one) => one.chains.length > 0)
    .map(({ hook, chains: names }) => `${hook}: ${names.join(', ')}`);
  return [
    ['entered', entered ?? 'sent by the node itself'],
    ['Service', service === null ? undefined : `${service} at ${destination}`],
    ['endpoint', isAlone ? (endpoint ?? undefined) : undefined],
    ['seen as', isAlone ? (masqueradedAs ?? undefined) : undefined],
    ['passed', chains.join('; ') || 'no chain of nf_tables'],
    ['left', left ?? undefined],
    ['why', reasons.join(' ') || undefined],
  ];
}

function stepsText({ source, destination, steps }: TracedConnection): string[] {
  return [`  steps of ${source} → ${destination}\n`, ...steps.map((step) => `    ${step}\n`)];
}

function endText(report: TraceReport, paint: Paint): string {
  const { connections, subject, seconds, limit, isIncomplete, notShown } = report;
  const time = spanText(seconds * 1000);
  const none = `No first packet of a connection of ${subject} came to this node in ${time}.`;
  const some = `Followed ${count(connections.length, 'connection')} in ${time}${connections.length >= limit ? ', as many as --packets allows' : ''}.`;
  const gaps = paint('yellow', 'The kernel could not report every step: ways may have gaps.');
  const lines = [connections.length === 0 ? none : some, ...(isIncomplete ? [gaps] : []), ...notShown];
  return lines.map((line) => `${line}\n`).join('');
}
