import { useState } from 'preact/hooks';
import type { JournalItem, JournalReport } from '../inspect/api.ts';
import { whatText } from '../inspect/journal-words.ts';
import { spanText } from '../lib/quantity-text.ts';
import type { Query } from './api.ts';
import { useAsked } from './asked.ts';

const maxItems = 100;
const tones: Readonly<Record<JournalItem['event'], string>> = {
  Start: 'way',
  Sync: '',
  SyncFailed: 'outage',
  Repair: 'warning',
  NotProgrammed: 'warning',
  WatchLost: 'warning',
  WatchRegained: 'fine',
  Configuration: 'way',
  Problem: 'outage',
  ProblemSolved: 'fine',
};
export const journalEvents = Object.keys(tones);
const symbols: Readonly<Record<string, string>> = { outage: '✕', warning: '▲', fine: '●', way: '◆' };

/** The journal about some Services, the newest first. */
export function JournalList({ query }: { query: Query }) {
  const { report, error } = useAsked<JournalReport>('journal', query);
  if (!report) return <p class="calm">{error ?? 'Reading the journal…'}</p>;
  return <Events items={report.items} since={report.since} unnamed={report.unnamed} />;
}

interface EventsProps {
  readonly items: readonly JournalItem[];
  readonly since: string;
  readonly unnamed?: number;
}

export function Events({ items, since, unnamed = 0 }: EventsProps) {
  const [shown, setShown] = useState(maxItems);
  const newest = items.toReversed().slice(0, shown);
  if (newest.length === 0) return <p class="calm">Nothing happened since {clock(since)}.</p>;
  return (
    <>
      <table class="journal">
        <thead>
          <tr>
            <th scope="col">Time</th>
            <th scope="col">Event</th>
            <th scope="col" class="number wide">
              Took
            </th>
            <th scope="col" class="number wide">
              From API
            </th>
            <th scope="col">What</th>
          </tr>
        </thead>
        <tbody>
          {newest.map((item) => (
            <Event key={`${item.time} ${item.event} ${item.family}`} item={item} />
          ))}
        </tbody>
      </table>
      {items.length > shown && (
        <button type="button" class="more" onClick={() => setShown(shown + 10 * maxItems)}>
          Show older events ({(items.length - shown).toLocaleString('en')})
        </button>
      )}
      {unnamed > 0 && (
        <p class="count">
          Left out: {unnamed === 1 ? 'one event' : `${unnamed.toLocaleString('en')} events`} about more
          Services than the journal names.
        </p>
      )}
    </>
  );
}

function Event({ item }: { item: JournalItem }) {
  const { time, event, family, sync } = item;
  const tone = tones[event];
  return (
    <tr>
      <td>
        <time dateTime={time}>{clock(time)}</time>
      </td>
      <td class={tone}>
        {tone !== '' && <span aria-hidden="true">{symbols[tone]} </span>}
        {event}
      </td>
      <td class="number wide">{secondsText(sync?.seconds)}</td>
      <td class="number wide">{secondsText(sync?.latencySeconds)}</td>
      <td>
        {family === null ? '' : `${family}: `}
        {whatText(item)}
      </td>
    </tr>
  );
}

function secondsText(seconds: number | null | undefined): string {
  return seconds === undefined || seconds === null ? '–' : spanText(seconds * 1000);
}

function clock(time: string): string {
  return new Date(time).toTimeString().slice(0, 8);
}
