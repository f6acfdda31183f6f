import type { ServiceCounters } from '../backends/inspection.ts';
import type { CountersReport } from '../inspect/api.ts';
import { tableText } from './table.ts';

type Quantity = 'connections' | 'packets' | 'bytes';

/** What one service port did per second between two looks; what is not counted is undefined. */
export interface ServiceRates {
  readonly service: string;
  readonly family: string;
  readonly connectionsPerSecond: number | undefined;
  readonly packetsPerSecond: number | undefined;
  readonly bytesPerSecond: number | undefined;
  /** Since the kernel began to count. */
  readonly connections: number | undefined;
}

/** The rates between two looks, the busiest service port first. */
export function ratesOf(before: CountersReport, after: CountersReport): ServiceRates[] {
  const seconds = (Date.parse(after.time) - Date.parse(before.time)) / 1000;
  const earlier = new Map(before.items.map((item) => [keyOf(item), item]));
  const rates = after.items.map((now) => {
    const then = earlier.get(keyOf(now));
    const rate = (quantity: Quantity) => rateOf(then?.[quantity], now[quantity], seconds);
    return {
      service: now.service,
      family: now.family,
      connectionsPerSecond: rate('connections'),
      packetsPerSecond: rate('packets'),
      bytesPerSecond: rate('bytes'),
      connections: now.connections,
    };
  });
  return rates.sort((a, b) => busyness(b) - busyness(a) || (a.service < b.service ? -1 : 1));
}

export function topText(rates: readonly ServiceRates[], limit = Number.POSITIVE_INFINITY): string {
  const rows = rates
    .slice(0, limit)
    .map((row) => [
      row.service,
      row.family,
      rateText(row.connectionsPerSecond),
      rateText(row.packetsPerSecond),
      rateText(row.bytesPerSecond),
      row.connections === undefined ? '-' : String(row.connections),
    ]);
  return tableText(['SERVICE PORT', 'FAMILY', 'CONNECTIONS/S', 'PACKETS/S', 'BYTES/S', 'CONNECTIONS'], rows);
}

/** A counter that went back was begun anew meanwhile. */
function rateOf(then: number | undefined, now: number | undefined, seconds: number): number | undefined {
  if (now === undefined || seconds <= 0) return undefined;
  const before = then === undefined || then > now ? 0 : then;
  return (now - before) / seconds;
}

function busyness({
  connectionsPerSecond = 0,
  bytesPerSecond = 0,
  packetsPerSecond = 0,
}: ServiceRates): number {
  return connectionsPerSecond || bytesPerSecond || packetsPerSecond;
}

function rateText(rate: number | undefined): string {
  return rate === undefined ? '-' : rate.toFixed(1);
}

function keyOf({ service, family }: ServiceCounters & { readonly family: string }): string {
  return `${family} ${service}`;
}
