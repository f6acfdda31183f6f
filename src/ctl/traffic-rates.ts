import type { FailedConnections, TrafficItem, TrafficReport } from '../inspect/traffic-api.ts';
import type { SortKey } from './flags.ts';

/** Figures per second; null for what is not known: the kernel does not count it, or there is no earlier reading. */
export interface Rates {
  readonly opened: number | null;
  readonly ended: number | null;
  readonly failed: number | null;
  readonly packetsToEndpoint: number | null;
  readonly packetsToClient: number | null;
  readonly bytesToEndpoint: number | null;
  readonly bytesToClient: number | null;
}

/** An item of a traffic report, with what follows from the reading before. */
export interface RatedItem extends TrafficItem {
  readonly perSecond: Rates;
  /** The part of the connections of the service port that this endpoint got, 0 to 1; null unless grouped by endpoint. */
  readonly measuredShare: number | null;
  /** Whether the measured share differs from the expected one by more than chance explains. */
  readonly skewed: boolean;
}

/** A report with rates. `seconds` is the time between the two readings; null without an earlier one. */
export interface RatesReport extends Omit<TrafficReport, 'kind' | 'items'> {
  readonly kind: 'TrafficRates';
  readonly seconds: number | null;
  readonly items: readonly RatedItem[];
}

/** Compares two readings. `before` is undefined for the first one, which has no rates. */
export function ratesBetween(
  before: TrafficReport | undefined,
  now: TrafficReport,
  sort: SortKey,
): RatesReport {
  const seconds = before ? (Date.parse(now.time) - Date.parse(before.time)) / 1000 : 0;
  const earlier = new Map(before?.items.map((item) => [keyOf(item), item]));
  // Counting has begun again: the earlier figures are of another count.
  if (before?.since !== now.since) earlier.clear();
  const openedOf = openedByService(now.items);
  const items = now.items.map((item): RatedItem => {
    const share = shareOf(item, openedOf.get(serviceKeyOf(item)) ?? 0);
    return { ...item, perSecond: ratesOf(earlier.get(keyOf(item)), item, seconds), ...share };
  });
  return { ...now, kind: 'TrafficRates', seconds: seconds > 0 ? seconds : null, items: sorted(items, sort) };
}

/** All connections that did not get through. */
export function failedOf({ rejected, dropped, filtered, reset, unanswered }: FailedConnections): number {
  return rejected + dropped + filtered + reset + unanswered;
}

function ratesOf(then: TrafficItem | undefined, now: TrafficItem, seconds: number): Rates {
  const rate = (figureOf: (item: TrafficItem) => number | null): number | null => {
    const after = figureOf(now);
    if (after === null || seconds <= 0) return null;
    const earlier = then ? (figureOf(then) ?? 0) : 0;
    // A figure below the earlier one was forgotten in between, and counts from zero.
    return (after - (earlier > after ? 0 : earlier)) / seconds;
  };
  return {
    opened: rate(({ opened }) => opened),
    ended: rate(({ ended }) => ended),
    failed: rate(({ failed }) => failedOf(failed)),
    packetsToEndpoint: rate(({ packetsToEndpoint }) => packetsToEndpoint),
    packetsToClient: rate(({ packetsToClient }) => packetsToClient),
    bytesToEndpoint: rate(({ bytesToEndpoint }) => bytesToEndpoint),
    bytesToClient: rate(({ bytesToClient }) => bytesToClient),
  };
}

/** How many connections the endpoints of each service port got; those without an endpoint are not among them. */
function openedByService(items: readonly TrafficItem[]): ReadonlyMap<string, number> {
  const opened = new Map<string, number>();
  for (const item of items) {
    if (item.endpoint === null) continue;
    const key = serviceKeyOf(item);
    opened.set(key, (opened.get(key) ?? 0) + item.opened);
  }
  return opened;
}

function shareOf(item: TrafficItem, all: number): Pick<RatedItem, 'measuredShare' | 'skewed'> {
  const { endpoint, opened, expectedShare } = item;
  if (endpoint === null || all === 0) return { measuredShare: null, skewed: false };
  const skewed = expectedShare !== null && isBeyondChance(opened, all, expectedShare);
  return { measuredShare: opened / all, skewed };
}

/** Whether `hits` of `draws` is more than four standard deviations away from what the probability gives. */
function isBeyondChance(hits: number, draws: number, probability: number): boolean {
  const deviation = Math.sqrt(draws * probability * (1 - probability));
  return Math.abs(hits - draws * probability) > 4 * deviation + 1;
}

/** The most first: by the rate of the figure, then by its total, then by name. */
function sorted(items: readonly RatedItem[], key: SortKey): RatedItem[] {
  const weighed = items.map((item) => ({ item, weights: weightsOf(item, key), name: keyOf(item) }));
  weighed.sort(
    (a, b) =>
      b.weights[0] - a.weights[0] ||
      b.weights[1] - a.weights[1] ||
      (a.name < b.name ? -1 : a.name > b.name ? 1 : 0),
  );
  return weighed.map(({ item }) => item);
}

function weightsOf(item: RatedItem, key: SortKey): readonly [number, number] {
  const { perSecond } = item;
  switch (key) {
    case 'connections':
      return [perSecond.opened ?? 0, item.opened];
    case 'bytes':
      return [
        (perSecond.bytesToEndpoint ?? 0) + (perSecond.bytesToClient ?? 0),
        (item.bytesToEndpoint ?? 0) + (item.bytesToClient ?? 0),
      ];
    case 'open':
      return [item.open, item.opened];
    case 'failed':
      return [perSecond.failed ?? 0, failedOf(item.failed)];
  }
}

function serviceKeyOf({ service, family }: TrafficItem): string {
  return `${service} ${family}`;
}

function keyOf(item: TrafficItem): string {
  return `${serviceKeyOf(item)} ${item.endpoint ?? ''} ${item.client ?? ''}`;
}
