import { count } from '../lib/count.ts';
import { spanText } from '../lib/quantity-text.ts';
import type { TracedConnection, TraceReport } from './report.ts';

/** Whether nothing is known to have gone wrong. */
export function isFine({ outcome }: TracedConnection): boolean {
  return outcome === 'answered' || outcome === 'delivered';
}

/** Connections that went the same way, told in one story. */
export interface Story {
  readonly first: TracedConnection;
  readonly headline: string;
  /** The ways of the single connections; none when there is only one, whose headline has it. */
  readonly ways: readonly string[];
  readonly fields: readonly (readonly [name: string, value: string])[];
  readonly all: readonly TracedConnection[];
}

/** One story for connections that went the same way; what went wrong comes first. */
export function storiesIn({ connections }: TraceReport): Story[] {
  const groups = [...Map.groupBy(connections, groupOf).values()];
  const stories = groups.flatMap((all) => (all[0] ? [storyOf(all[0], all)] : []));
  return stories.sort((a, b) => Number(isFine(a.first)) - Number(isFine(b.first)));
}

function groupOf({ verdict, service, destination, protocol }: TracedConnection): string {
  return [verdict, service, destination, protocol].join('\n');
}

function storyOf(first: TracedConnection, all: readonly TracedConnection[]): Story {
  const isAlone = all.length === 1;
  return {
    first,
    headline: isAlone ? first.headline : `${count(all.length, 'connection')}: ${first.verdict}`,
    ways: isAlone ? [] : all.map(({ headline, verdict }) => headline.slice(verdict.length + 2)),
    fields: fieldsOf(first, isAlone).flatMap(([name, value]) => (value ? [[name, value] as const] : [])),
    all,
  };
}

function fieldsOf(
  { entered, service, destination, endpoint, masqueradedAs, passed, left, reasons }: TracedConnection,
  isAlone: boolean,
): [string, string | null][] {
  const chains = passed
    .filter((one) => one.chains.length > 0)
    .map(({ hook, chains: names }) => `${hook}: ${names.join(', ')}`);
  return [
    ['entered', entered ?? 'sent by the node itself'],
    ['Service', service === null ? null : `${service} at ${destination}`],
    ['endpoint', isAlone ? endpoint : null],
    ['seen as', isAlone ? masqueradedAs : null],
    ['passed', chains.join('; ') || 'no chain of nf_tables'],
    ['left', left],
    ['why', reasons.join(' ')],
  ];
}

/** How many connections were followed. `most` says why not more, where that was the limit. */
export function summaryOf({ connections, subject, seconds, limit }: TraceReport, most: string): string {
  const time = spanText(seconds * 1000);
  if (connections.length === 0) {
    return `No first packet of a connection of ${subject} came to this node in ${time}.`;
  }
  const isLimited = connections.length >= limit;
  return `Followed ${count(connections.length, 'connection')} in ${time}${isLimited ? `, ${most}` : ''}.`;
}

/** What the stories do not tell, in sentences. */
export function gapsIn({ isIncomplete }: TraceReport): string[] {
  return isIncomplete ? ['The kernel could not report every step: ways may have gaps.'] : [];
}
