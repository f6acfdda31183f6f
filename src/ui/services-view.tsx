import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import type { ServiceReport } from '../inspect/api.ts';
import { askList } from './api.ts';
import { attentionOf } from './attention.ts';
import { AttentionList } from './attention-list.tsx';
import { Copies } from './copies.tsx';
import { useKeys } from './keys.tsx';
import type { Live } from './live.ts';
import { stay } from './navigate.ts';
import { NodeSummary } from './node-summary.tsx';
import type { ServiceFilter } from './route.ts';
import { isAddressSearch, rowOf, type ServiceRow, selectRows, stateTexts } from './service-row.ts';
import { ServicesTable } from './services-table.tsx';

/** The whole node: its state, what needs attention, and all Services. */
export function ServicesView({ live, filter }: { live: Live; filter: ServiceFilter }) {
  const { status, rows, rates } = live;
  const groups = useMemo(
    () => (status && rows ? attentionOf(status, rows, rates) : []),
    [status, rows, rates],
  );
  const also = useRowsAt(filter.search);
  const selected = useMemo(
    () => selectRows(rows ?? [], filter, also),
    [rows, filter.search, filter.namespace, filter.state, also],
  );
  const sorted = useMemo(() => sortRows(selected, filter.sort, rates), [selected, filter.sort, rates]);
  if (!status) return <p class="calm">Waiting for the first answer of kube-proxy…</p>;
  const change = (news: Partial<ServiceFilter>) => stay({ view: 'services', filter: { ...filter, ...news } });
  return (
    <>
      {rows && <AttentionList groups={groups} />}
      <NodeSummary status={status} />
      <section aria-labelledby="services">
        <h2 id="services">Services</h2>
        <Toolbar rows={rows ?? []} {...{ filter, change }} />
        <p class="count" role="status">
          {rows ? countText(sorted.length, rows.length) : 'Reading the Services…'}
        </p>
        {live.ratesNote !== '' && <p class="count">Figures are incomplete: {live.ratesNote}.</p>}
        {rows && <ServicesTable rows={sorted} {...{ rates, filter, change }} />}
      </section>
      <Copies {...copiesOf(filter)} />
    </>
  );
}

function countText(shown: number, all: number): string {
  const total = `${all.toLocaleString('en')} service port${all === 1 ? '' : 's'}`;
  return shown === all ? total : `${shown.toLocaleString('en')} of ${total}`;
}

/** The command and the JSON with the rows of this filter, as far as the API can select. */
function copiesOf({ search, namespace }: ServiceFilter) {
  const name = isAddressSearch(search) ? search : '';
  const query = { ...(name !== '' && { name }), ...(namespace !== '' && { namespace }) };
  const words = ['services', ...(name === '' ? [] : [name]), ...(namespace === '' ? [] : ['-n', namespace])];
  return { command: words.join(' '), page: 'services', query };
}

interface ToolbarProps {
  readonly rows: readonly ServiceRow[];
  readonly filter: ServiceFilter;
  readonly change: (news: Partial<ServiceFilter>) => void;
}

function Toolbar({ rows, filter, change }: ToolbarProps) {
  const search = useRef<HTMLInputElement>(null);
  const namespaces = useMemo(() => [...new Set(rows.map(({ report }) => report.namespace))].sort(), [rows]);
  useKeys({ '/': () => search.current?.focus() });
  useEffect(() => {
    // Who types is ahead of the address.
    const field = search.current;
    if (field && field !== document.activeElement) field.value = filter.search;
  }, [filter.search]);
  return (
    <search>
      <form class="toolbar" onSubmit={(event) => event.preventDefault()}>
        <label>
          <span>Search</span>
          <input
            ref={search}
            type="search"
            placeholder="name, IP or port   ( / )"
            autocomplete="off"
            spellcheck={false}
            onKeyDown={toFirstRow}
            onInput={({ currentTarget }) => change({ search: currentTarget.value.trim() })}
          />
        </label>
        <label>
          <span>Namespace</span>
          <select
            value={filter.namespace}
            onChange={({ currentTarget }) => change({ namespace: currentTarget.value })}
          >
            <option value="">all</option>
            {namespaces.map((name) => (
              <option key={name} value={name}>
                {name}
              </option>
            ))}
          </select>
        </label>
        <label>
          <span>State</span>
          <select
            value={filter.state}
            onChange={({ currentTarget }) => change({ state: currentTarget.value })}
          >
            <option value="">all</option>
            <option value="attention">needs attention</option>
            {Object.entries(stateTexts).map(([state, text]) => (
              <option key={state} value={state}>
                {text}
              </option>
            ))}
          </select>
        </label>
      </form>
    </search>
  );
}

/** From the search field into the table. */
function toFirstRow(event: KeyboardEvent): void {
  if (event.key !== 'ArrowDown') return;
  event.preventDefault();
  document.querySelector<HTMLElement>('.services tbody a')?.focus();
}

/** The keys of the service ports with an endpoint at the address that is searched for: only the proxy knows those. */
function useRowsAt(search: string): ReadonlySet<string> {
  const [found, setFound] = useState<ReadonlySet<string>>(new Set());
  useEffect(() => {
    setFound((old) => (old.size === 0 ? old : new Set()));
    if (!isAddressSearch(search)) return undefined;
    const end = new AbortController();
    askList<ServiceReport>('services', { name: search }, end.signal)
      .then(({ items }) => setFound(new Set(items.map((item) => rowOf(item).key))))
      .catch(() => undefined);
    return () => end.abort();
  }, [search]);
  return found;
}

function sortRows(rows: readonly ServiceRow[], sort: string, rates: Live['rates']): readonly ServiceRow[] {
  if (!rates || (sort !== 'connections' && sort !== 'bytes')) return rows;
  const rateOf = ({ key }: ServiceRow) => rates.get(key)?.[sort] ?? -1;
  return rows.toSorted((a, b) => rateOf(b) - rateOf(a));
}
