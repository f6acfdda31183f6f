import { podText } from '../inspect/pod-text.ts';
import type { FailedConnections, TrafficGrouping } from '../inspect/traffic-api.ts';
import { count } from '../lib/count.ts';
import { amountText, percentText } from '../lib/quantity-text.ts';
import { errorLines, warningLines } from './family-errors.ts';
import { type Column, itemsText, type Layout, unlimited } from './table.ts';
import type { Paint } from './terminal.ts';
import { failedOf, type RatedItem, type RatesReport } from './traffic-rates.ts';

/** The table of a report with rates, then a line for each thing that its figures do not tell. */
export function topText(report: RatesReport, paint: Paint, layout: Layout = unlimited): string {
  const table = itemsText(topColumns(report.by, paint), report.items, layout);
  return (
    table +
    notesOf(report)
      .map((note) => `${note}\n`)
      .join('')
  );
}

/** What the figures leave out, a line for each reason. */
export function notesOf({ lostEvents, leftOut, families }: Omit<RatesReport, 'items'>): string[] {
  return [
    ...(lostEvents > 0
      ? [`The kernel lost ${count(lostEvents, 'event')} about connections: the figures are too low.`]
      : []),
    ...(leftOut > 0 ? [`Not shown: ${count(leftOut, 'further item')}; there are too many.`] : []),
    ...errorLines(families),
    ...warningLines(families),
  ];
}

export function topColumns(by: TrafficGrouping, paint: Paint): readonly Column<RatedItem>[] {
  return [
    { heading: 'SERVICE PORT', cell: ({ service }) => service, least: 16 },
    { heading: 'FAMILY', cell: ({ family }) => family, leaveOut: 1 },
    ...subjectColumns(by, paint),
    { heading: 'NEW/S', cell: ({ perSecond }) => amountText(perSecond.opened) },
    { heading: 'OPEN', cell: ({ open }) => amountText(open) },
    { heading: 'BYTES IN/S', cell: ({ perSecond }) => amountText(perSecond.bytesToEndpoint), leaveOut: 4 },
    { heading: 'BYTES OUT/S', cell: ({ perSecond }) => amountText(perSecond.bytesToClient), leaveOut: 5 },
    { heading: 'NEW', cell: ({ opened }) => amountText(opened), leaveOut: 3 },
    { heading: 'ENDED', cell: ({ ended }) => amountText(ended), isExtra: true },
    { heading: 'BYTES IN', cell: ({ bytesToEndpoint }) => amountText(bytesToEndpoint), isExtra: true },
    { heading: 'BYTES OUT', cell: ({ bytesToClient }) => amountText(bytesToClient), isExtra: true },
    { heading: 'PACKETS IN', cell: ({ packetsToEndpoint }) => amountText(packetsToEndpoint), isExtra: true },
    { heading: 'PACKETS OUT', cell: ({ packetsToClient }) => amountText(packetsToClient), isExtra: true },
    { heading: 'FAILED/S', cell: ({ perSecond }) => amountText(perSecond.failed), isExtra: true },
    { heading: 'FAILED', cell: ({ failed }) => failedText(failed, paint), least: 11 },
  ];
}

/** The columns that tell apart the items of one service port. */
function subjectColumns(by: TrafficGrouping, paint: Paint): readonly Column<RatedItem>[] {
  switch (by) {
    case 'service':
      return [];
    case 'client':
      return [{ heading: 'CLIENT', cell: ({ client }) => client ?? '-' }];
    case 'endpoint':
      return [
        { heading: 'ENDPOINT', cell: ({ endpoint }) => endpoint ?? 'none' },
        { heading: 'POD', cell: podText, least: 12, leaveOut: 6 },
        { heading: 'ZONE', cell: ({ zone }) => zone ?? '-', leaveOut: 0 },
        { heading: 'EXPECTED', cell: ({ expectedShare }) => shareText(expectedShare) },
        { heading: 'MEASURED', cell: (item) => measuredText(item, paint) },
      ];
  }
}

function shareText(share: number | null): string {
  return share === null ? '-' : percentText(share);
}

/** `41.2 % high` where that is more than chance explains. */
function measuredText({ measuredShare, expectedShare, skewed }: RatedItem, paint: Paint): string {
  const text = shareText(measuredShare);
  if (!skewed || measuredShare === null) return text;
  return paint('yellow', `${text} ${measuredShare > (expectedShare ?? 0) ? 'high' : 'low'}`);
}

/** `3 rejected, 1 reset`, by what became of them. */
function failedText(failed: FailedConnections, paint: Paint): string {
  if (failedOf(failed) === 0) return '-';
  const { rejected, dropped, filtered, reset, unanswered } = failed;
  const parts = Object.entries({ rejected, dropped, filtered, reset, unanswered })
    .filter(([, n]) => n > 0)
    .map(([what, n]) => `${amountText(n)} ${what}`);
  return paint('yellow', parts.join(', '));
}
