import type { ServiceCounters } from '../backends/inspection.ts';
import { API_VERSION, type CountersReport } from '../inspect/api.ts';
import { toMillis } from '../lib/duration.ts';
import { sleep } from '../lib/sleep.ts';
import { type CommandContext, print } from './command.ts';
import { isTable } from './flags.ts';
import { isIn, namespaceOf } from './selector.ts';
import { type Column, itemsText, type Layout } from './table.ts';
import { EXIT_OK, type ExitCode } from './terminal.ts';

const clearScreen = '\u001b[H\u001b[2J';
/** Lines besides the rows: headings, columns left out, the cursor. */
const spareLines = 3;

type Quantity = 'connections' | 'packets' | 'bytes';

/** The traffic of one service port per second; undefined for what the mode does not count. */
export interface ServiceRates {
  readonly service: string;
  readonly family: string;
  readonly connectionsPerSecond: number | undefined;
  readonly packetsPerSecond: number | undefined;
  readonly bytesPerSecond: number | undefined;
  /** Total since the kernel began to count. */
  readonly connections: number | undefined;
}

/** Shows rates again and again: on a terminal until it is interrupted, in a pipe once. */
export async function watchTop(context: CommandContext): Promise<ExitCode> {
  const { options, source, terminal, clock } = context;
  const { stdout } = terminal;
  const isLive = stdout.isTTY === true && isTable(options.output);
  const rounds = options.count > 0 ? options.count : isLive ? Number.POSITIVE_INFINITY : 1;
  const rows = isLive && stdout.rows !== undefined ? stdout.rows - spareLines : Number.POSITIVE_INFINITY;
  const { namespace } = namespaceOf(options);
  let before = counted(await source.counters());
  for (let round = 0; round < rounds; round++) {
    await sleep(clock, toMillis(options.interval));
    const after = counted(await source.counters());
    const items = ratesOf(before, after).filter(({ service }) => isIn(service, namespace));
    const report = { apiVersion: API_VERSION, kind: 'Rates', mode: after.mode, time: after.time, items };
    const text = () => (isLive ? clearScreen : '') + topText(items.slice(0, rows), context.layout);
    print(context, report, text, () => items.map(({ service }) => service));
    before = after;
  }
  return EXIT_OK;
}

/** Throws the reason when no family has counters. */
function counted(report: CountersReport): CountersReport {
  const [first] = report.families;
  if (first && report.families.every(({ error }) => error !== null)) {
    throw new Error(first.error ?? 'there are no counters');
  }
  return report;
}

/** The rates between two reports, the busiest service port first. */
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

const columns: readonly Column<ServiceRates>[] = [
  { heading: 'SERVICE PORT', cell: ({ service }) => service, least: 20 },
  { heading: 'FAMILY', cell: ({ family }) => family, leaveOut: 1 },
  { heading: 'CONNECTIONS/S', cell: ({ connectionsPerSecond }) => rateText(connectionsPerSecond) },
  { heading: 'PACKETS/S', cell: ({ packetsPerSecond }) => rateText(packetsPerSecond), leaveOut: 3 },
  { heading: 'BYTES/S', cell: ({ bytesPerSecond }) => rateText(bytesPerSecond) },
  { heading: 'CONNECTIONS', cell: ({ connections }) => String(connections ?? '-'), leaveOut: 2 },
];

export function topText(rates: readonly ServiceRates[], layout?: Layout): string {
  return itemsText(columns, rates, layout);
}

/** A counter below its earlier value was reset, and counts from zero. */
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
