import { parseDuration, toMillis } from '../lib/duration.ts';
import { API_VERSION, type JournalItem, type JournalReport } from './api.ts';
import type { Journal, JournalEntry } from './journal.ts';
import { QuestionError } from './question.ts';
import { type Selector, selectorParameters } from './selection.ts';
import { timeText } from './status-report.ts';

/** Which part of the journal to report; without a field, all of it. */
export interface JournalQuestion extends Selector {
  /** A time in RFC 3339, or a duration until now such as `10m`. */
  readonly since?: string | undefined;
}

export const journalParameters = [
  ...selectorParameters,
  'since',
] as const satisfies readonly (keyof JournalQuestion)[];

/** The whole journal, the oldest item first. */
export function journalReport(journal: Journal, now: number): JournalReport {
  return {
    apiVersion: API_VERSION,
    kind: 'Journal',
    time: timeText(now),
    since: timeText(journal.completeSince),
    unnamed: 0,
    items: journal.entries().map(itemOf),
  };
}

/**
 * The part of a report that is about the Services that `isSelected` accepts (undefined: about anything), since the time
 * of the question. Throws a QuestionError when that time cannot be read.
 */
export function selectFromJournal(
  report: JournalReport,
  since: string | undefined,
  isSelected: ((service: string) => boolean) | undefined,
): JournalReport {
  const from = since === undefined || since === '' ? 0 : sinceTime(since, Date.parse(report.time));
  const recent = report.items.filter(({ time }) => Date.parse(time) >= from);
  if (!isSelected) return { ...report, items: recent };
  const isAbout = ({ services }: JournalItem) => services.some(({ service }) => isSelected(service));
  const items = recent.filter(isAbout);
  const unnamed = recent.filter((item) => item.serviceCount > item.services.length && !isAbout(item)).length;
  return { ...report, unnamed, items };
}

/** Whether `[NAMESPACE/]NAME[:PORT[/PROTO]]`, which may be empty, and a namespace, which may be empty, mean this Service. */
export function isServiceNamed(service: string, { name = '', namespace = '' }: Selector): boolean {
  if (namespace !== '' && !service.startsWith(`${namespace}/`)) return false;
  const wanted = name.replace(/:.*$/, '');
  const own = wanted.includes('/') ? service : service.slice(service.indexOf('/') + 1);
  return wanted === '' || own === wanted;
}

function sinceTime(text: string, now: number): number {
  const time = /^\d{4}-/.test(text) ? Date.parse(text) : Number.NaN;
  if (!Number.isNaN(time)) return time;
  try {
    return now - toMillis(parseDuration(text));
  } catch {
    throw new QuestionError(`since ${JSON.stringify(text)} is neither a time in RFC 3339 nor a duration`);
  }
}

function itemOf({
  time,
  event,
  family,
  count,
  texts,
  services,
  serviceCount,
  sync,
}: JournalEntry): JournalItem {
  return {
    time: timeText(time),
    event,
    family: family ?? null,
    count,
    texts: [...texts],
    services: services.map(({ service, latencyMs }) => ({ service, latencySeconds: seconds(latencyMs) })),
    serviceCount,
    ...(sync && {
      sync: {
        kind: sync.kind,
        seconds: seconds(sync.durationMs) ?? 0,
        servicePorts: sync.servicePorts,
        waitSeconds: seconds(sync.waitMs),
        latencySeconds: seconds(sync.latencyMs),
      },
    }),
  };
}

function seconds(ms: number | undefined): number | null {
  return ms === undefined ? null : Math.round(ms * 1000) / 1e6;
}
