import type { FailedConnections, TrafficItem, TrafficReport } from '../inspect/traffic-api.ts';
import { percentText } from '../lib/quantity-text.ts';

/** The traffic of one item per second, over the time between the last two reports. */
export interface Rate {
  readonly connections: number;
  /** Both ways; undefined while the kernel does not count them. */
  readonly bytes: number | undefined;
  readonly open: number;
  /** Since the proxy began to count. */
  readonly opened: number;
  /** Connections of the last minute that endpoints refused or left without an answer. */
  readonly failing: number;
  /** Connections per second of the last reports, the oldest first. */
  readonly history: readonly number[];
  /** For the next report: how many failed since the proxy began to count, at each of the last reports. */
  readonly failures: readonly number[];
}

/** Reports come every two seconds: two minutes, and one. */
const historyLength = 60;
const failuresLength = 30;

/** Makes rates of successive reports. */
export class Rates {
  #last: TrafficReport | undefined;
  #before = new Map<string, TrafficItem>();
  #rates = new Map<string, Rate>();

  /** The rates by key, after this report. They are there from the second report on. */
  update(report: TrafficReport): ReadonlyMap<string, Rate> {
    const last = this.#last;
    const seconds = last ? (Date.parse(report.time) - Date.parse(last.time)) / 1000 : 0;
    const isSame = last !== undefined && last.since === report.since && seconds > 0;
    const items = new Map(report.items.map((item) => [trafficKey(item), item]));
    const rates = new Map<string, Rate>();
    for (const [key, item] of items) {
      const past = isSame ? this.#rates.get(key) : undefined;
      rates.set(key, rateOf(isSame ? this.#before.get(key) : undefined, item, isSame ? seconds : 0, past));
    }
    this.#last = report;
    this.#before = items;
    this.#rates = rates;
    return rates;
  }
}

function rateOf(
  before: TrafficItem | undefined,
  now: TrafficItem,
  seconds: number,
  past: Rate | undefined,
): Rate {
  const perSecond = (then: number, value: number) => (seconds > 0 ? Math.max(0, value - then) / seconds : 0);
  const connections = perSecond(before?.opened ?? 0, now.opened);
  const bytes = bytesOf(now);
  // Without traffic, an item is not in the report.
  const earlier = past?.failures ?? (seconds > 0 ? [0] : []);
  const failures = [...earlier, now.failed.reset + now.failed.unanswered].slice(-failuresLength);
  return {
    connections,
    bytes: bytes === undefined ? undefined : perSecond((before && bytesOf(before)) ?? 0, bytes),
    open: now.open,
    opened: now.opened,
    failing: (failures.at(-1) ?? 0) - (failures[0] ?? 0),
    history: seconds > 0 ? [...(past?.history ?? []), connections].slice(-historyLength) : [],
    failures,
  };
}

/** The same as the key of a row of the table, when grouped by Service. */
export function trafficKey({ service, family, endpoint, client }: TrafficItem): string {
  return [service, family, endpoint ?? client].filter((part) => part !== null).join(' ');
}

function bytesOf({ bytesToEndpoint, bytesToClient }: TrafficItem): number | undefined {
  return bytesToEndpoint === null || bytesToClient === null ? undefined : bytesToEndpoint + bytesToClient;
}

export function failedCount(failed: FailedConnections): number {
  return Object.values(failed).reduce((sum, n) => sum + n, 0);
}

/** The connections of a service port that got an endpoint. */
export function openedToEndpoints(items: readonly TrafficItem[]): number {
  return items.reduce((sum, item) => sum + (item.endpoint === null ? 0 : item.opened), 0);
}

/** `12 open, measured 34.1 % of 1.2k, 3 failed`; `all` are the connections of all endpoints of the service port. */
export function figuresText({ opened, open, failed }: TrafficItem, all: number): string {
  const measured = all === 0 ? '' : `, measured ${percentText(opened / all)} of ${shortNumber(all)}`;
  const failures = failed.reset + failed.unanswered;
  return `${open} open${measured}${failures === 0 ? '' : `, ${failures} failed`}`;
}

const units = ['', 'k', 'M', 'G', 'T'];

/** `0`, `3.4`, `812`, `1.2k`, `34M`. */
export function shortNumber(value: number): string {
  let [scaled, unit] = [value, 0];
  while (scaled >= 999.5 && unit < units.length - 1) [scaled, unit] = [scaled / 1000, unit + 1];
  const digits = scaled === 0 || scaled >= 9.95 || (unit === 0 && Number.isInteger(scaled)) ? 0 : 1;
  return `${scaled.toFixed(digits)}${units[unit]}`;
}
