import type { TrafficGrouping, TrafficReport } from '../inspect/traffic-api.ts';
import { type CommandContext, print } from './command.ts';
import { requireLook } from './family-errors.ts';
import { isTable, type SortKey } from './flags.ts';
import { requireSome, selectorOf } from './selector.ts';
import type { TrafficQuestion } from './source.ts';
import type { Layout } from './table.ts';
import { EXIT_ERROR, EXIT_OK, type ExitCode } from './terminal.ts';
import { cut } from './text.ts';
import { type RatedItem, type RatesReport, ratesBetween } from './traffic-rates.ts';
import { notesOf, topText } from './traffic-text.ts';
import { watch } from './watch.ts';

const clearScreen = '\u001b[H\u001b[2J';
/** Lines besides the rows and the notes: title, headings, columns left out, the cursor. */
const spareLines = 4;

/** Shows rates again and again: on a terminal until it is interrupted, in a pipe once. */
export async function watchTop(context: CommandContext): Promise<ExitCode> {
  const { options, source, terminal } = context;
  const isLive = terminal.stdout.isTTY === true && isTable(options.output);
  const question = questionOf(context);
  const look = async () => counted(await source.traffic(question));
  const first = await look();
  if (first.items.length === 0) requireSome((await source.services(selectorOf(context))).items, question);
  let before: TrafficReport | undefined;
  let hasShown = false;
  const show = (now: TrafficReport) => {
    const rates = ratesBetween(before, now, options.sort);
    // A pipe gets only what it can use: rates need two readings.
    if (before || isLive) printRates(context, rates, isLive);
    hasShown ||= before !== undefined;
    before = now;
  };
  // The first reading is no round of its own.
  const rounds = options.count > 0 ? options.count : isLive ? -1 : 1;
  await watch({ ...context, options: { ...options, count: rounds + 1 } }, first, look, show);
  return hasShown ? EXIT_OK : EXIT_ERROR;
}

function questionOf(context: CommandContext): TrafficQuestion {
  const selector = selectorOf(context);
  const usual: TrafficGrouping = selector.name === undefined ? 'service' : 'endpoint';
  return { by: context.options.by ?? usual, ...selector };
}

/** Throws the reason when nothing is counted. */
function counted(report: TrafficReport): TrafficReport {
  requireLook(report.families, report.items);
  return report;
}

function printRates(context: CommandContext, rates: RatesReport, isLive: boolean): void {
  const { terminal, layout, paint, options } = context;
  const text = () => {
    if (!isLive) return topText(rates, paint, layout);
    const { rows = Number.POSITIVE_INFINITY } = terminal.stdout;
    const shown = {
      ...rates,
      items: rates.items.slice(0, Math.max(1, rows - spareLines - notesOf(rates).length)),
    };
    return clearScreen + titleText(rates, options.sort, layout) + topText(shown, paint, layout);
  };
  print(context, rates, text, () => rates.items.map(nameOf));
}

function titleText({ time, since, by, mode }: RatesReport, sort: SortKey, { width }: Layout): string {
  const clock = (moment: string) => new Date(moment).toTimeString().slice(0, 8);
  const title = `${clock(time)}, ${mode} mode, by ${by}, sorted by ${sort}, since ${clock(since)}`;
  return `${cut(title, width ?? title.length)}\n`;
}

function nameOf({ service, endpoint, client }: RatedItem): string {
  return endpoint ?? client ?? service;
}
