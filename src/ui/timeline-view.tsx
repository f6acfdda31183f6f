import { useMemo } from 'preact/hooks';
import type { JournalReport } from '../inspect/api.ts';
import { useAsked } from './asked.ts';
import { Copies } from './copies.tsx';
import { Events, journalEvents } from './journal-list.tsx';
import { JournalPlot } from './journal-plot.tsx';
import { useKeys } from './keys.tsx';
import { go, stay } from './navigate.ts';
import { allServices, type TimelineFilter } from './route.ts';

/** The last hour of the node. */
export function TimelineView({ filter }: { filter: TimelineFilter }) {
  const { report, error } = useAsked<JournalReport>('journal', {});
  useKeys({ Escape: () => go({ view: 'services', filter: allServices }) });
  const items = useMemo(
    () => report?.items.filter(({ event }) => isShown(event, filter.event)) ?? [],
    [report, filter.event],
  );
  return (
    <>
      <h2 class="title">Last hour</h2>
      {!report && <p class="calm">{error ?? 'Reading the journal…'}</p>}
      {report && <JournalPlot report={report} />}
      {report && (
        <form class="toolbar" onSubmit={(event) => event.preventDefault()}>
          <label>
            <span>Events</span>
            <select
              value={filter.event}
              onChange={({ currentTarget }) =>
                stay({ view: 'timeline', filter: { event: currentTarget.value } })
              }
            >
              <option value="">all</option>
              <option value="-Sync">all but syncs</option>
              {journalEvents.map((event) => (
                <option key={event} value={event}>
                  {event}
                </option>
              ))}
            </select>
          </label>
        </form>
      )}
      {report && <Events items={items} since={report.since} />}
      <Copies command="journal" page="journal" />
    </>
  );
}

function isShown(event: string, wanted: string): boolean {
  return wanted === '' || (wanted === '-Sync' ? event !== 'Sync' : event === wanted);
}
