import type { ComponentChildren } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import type { ServiceReport } from '../inspect/api.ts';
import { joinHostPort } from '../model/ip.ts';
import { useKeys } from './keys.tsx';
import { type Rate, shortNumber } from './rates.ts';
import { type ServiceFilter, serviceHash } from './route.ts';
import { type ServiceRow, type ServiceState, stateTexts } from './service-row.ts';
import { Sparkline } from './sparkline.tsx';
import { useVisibleRows } from './virtual-rows.ts';

const phone = matchMedia('(max-width: 640px)');
const rowHeights = { wide: 32, narrow: 52 };

interface TableProps {
  readonly rows: readonly ServiceRow[];
  readonly rates: ReadonlyMap<string, Rate> | undefined;
  readonly filter: ServiceFilter;
  readonly change: (news: Partial<ServiceFilter>) => void;
}

/** All rows in one table, of which only the visible ones are in the document. */
export function ServicesTable({ rows, rates, filter, change }: TableProps) {
  const rowHeight = useRowHeight();
  const { ref, range, focusRow } = useVisibleRows(rows.length, rowHeight);
  useKeys({ ArrowDown: () => focusRow(0) });
  const move = (event: KeyboardEvent) => {
    const step = { ArrowDown: 1, ArrowUp: -1, PageDown: 15, PageUp: -15 }[event.key];
    const row = event.target instanceof Element ? event.target.closest('tr')?.dataset.row : undefined;
    if (step === undefined || row === undefined) return;
    event.preventDefault();
    focusRow(Math.min(Math.max(0, Number(row) + step), rows.length - 1));
  };
  const sortable = (sort: '' | 'connections' | 'bytes', text: string) => (
    <SortHeading text={text} isSorted={filter.sort === sort} onSort={() => change({ sort })} />
  );
  if (rows.length === 0) return <p class="calm">No Service fits.</p>;
  return (
    <table class={`services ${rates ? 'with-rates' : ''}`} aria-rowcount={rows.length + 1}>
      <thead>
        <tr aria-rowindex={1}>
          {rates ? sortable('', 'Service port') : <th scope="col">Service port</th>}
          <th scope="col" class="wide">
            Inside
          </th>
          <th scope="col" class="wide">
            Outside
          </th>
          <th scope="col" class="number wide">
            Endpoints
          </th>
          <th scope="col">State</th>
          {rates && sortable('connections', 'Conn/s')}
          {rates && sortable('bytes', 'Bytes/s')}
          {rates && (
            <th scope="col" class="wide">
              Last 2 min
            </th>
          )}
        </tr>
      </thead>
      <tbody ref={ref} onKeyDown={move}>
        <Space rows={range.first} rowHeight={rowHeight} />
        {rows.slice(range.first, range.end).map((row, i) => (
          <Row
            key={row.key}
            row={row}
            index={range.first + i}
            rate={rates?.get(row.key)}
            hasRates={rates !== undefined}
          />
        ))}
        <Space rows={Math.max(0, rows.length - range.end)} rowHeight={rowHeight} />
      </tbody>
    </table>
  );
}

/** Takes the place of rows that are not in the document. */
function Space({ rows, rowHeight }: { rows: number; rowHeight: number }) {
  if (rows === 0) return null;
  return (
    <tr class="space">
      <td style={{ height: `${rows * rowHeight}px` }} />
    </tr>
  );
}

function SortHeading({ text, isSorted, onSort }: { text: string; isSorted: boolean; onSort: () => void }) {
  const isNumber = text !== 'Service port';
  const direction = isNumber ? 'descending' : 'ascending';
  return (
    <th scope="col" class={isNumber ? 'number' : ''} aria-sort={isSorted ? direction : 'none'}>
      <button type="button" onClick={onSort}>
        {text}
        <span aria-hidden="true">{isSorted ? (isNumber ? ' ↓' : ' ↑') : ''}</span>
      </button>
    </th>
  );
}

interface RowProps {
  readonly row: ServiceRow;
  readonly index: number;
  readonly rate: Rate | undefined;
  readonly hasRates: boolean;
}

function Row({ row, index, rate, hasRates }: RowProps) {
  const { report, state } = row;
  const { namespace, name, service, family } = report;
  return (
    <tr data-row={index} aria-rowindex={index + 2}>
      <th scope="row">
        <a href={serviceHash(namespace, name)}>{service}</a>
        {family === 'IPv6' && <small> IPv6</small>}
      </th>
      <td class="wide">{insideText(report)}</td>
      <td class="wide" title={outsideText(report)}>
        {outsideText(report)}
      </td>
      <td class="number wide">{endpointsText(report)}</td>
      <td>
        <State state={state} />
      </td>
      {hasRates && <td class="number">{shortNumber(rate?.connections ?? 0)}</td>}
      {hasRates && <td class="number">{bytesText(rate)}</td>}
      {hasRates && (
        <td class="wide">{rate && rate.opened > 0 ? <Sparkline values={rate.history} /> : null}</td>
      )}
    </tr>
  );
}

const tones: Readonly<Record<ServiceState, string>> = {
  refused: 'outage',
  rejected: 'warning',
  dropped: 'warning',
  contested: 'warning',
  partial: 'note',
  fine: 'fine',
};
const symbols: Readonly<Record<string, string>> = { outage: '✕', warning: '▲', note: '○', fine: '●' };

/** The state of a service port, in a colour and in words. */
export function State({ state, children }: { state: ServiceState; children?: ComponentChildren }) {
  const tone = tones[state];
  return (
    <span class={`state ${tone}`}>
      <span aria-hidden="true">{symbols[tone]}</span> {children ?? stateTexts[state]}
    </span>
  );
}

/** A service port without traffic has no rate. */
function bytesText(rate: Rate | undefined): string {
  if (!rate) return '0';
  return rate.bytes === undefined ? '–' : shortNumber(rate.bytes);
}

function insideText({ direct, clusterIP, port }: ServiceReport): string {
  if (!direct) return joinHostPort(clusterIP, port);
  const addresses = new Set(direct.places.flatMap(({ address }) => address ?? []));
  return [...addresses].join(', ') || 'not reachable';
}

function outsideText({ nodePort, externalIPs, loadBalancerIPs }: ServiceReport): string {
  const port = nodePort === 0 ? [] : [`:${nodePort}`];
  return [...loadBalancerIPs, ...externalIPs, ...port].join(', ') || '–';
}

/** Those that take traffic, and how many are known when these are more. */
function endpointsText({ endpoints, internal, external }: ServiceReport): string {
  const used = [internal, external].map((decision) => {
    if (decision?.action !== 'forward') return 0;
    return decision.endpoints === 'local' ? endpoints.local : endpoints.cluster;
  });
  const most = Math.max(...used);
  return most === endpoints.known ? String(most) : `${most} of ${endpoints.known}`;
}

function useRowHeight(): number {
  const [isNarrow, setNarrow] = useState(phone.matches);
  useEffect(() => {
    const change = () => setNarrow(phone.matches);
    phone.addEventListener('change', change);
    return () => phone.removeEventListener('change', change);
  }, []);
  return isNarrow ? rowHeights.narrow : rowHeights.wide;
}
