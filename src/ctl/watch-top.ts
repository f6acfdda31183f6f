import { API_VERSION, type CountersReport } from '../inspect/api.ts';
import { toMillis } from '../lib/duration.ts';
import type { CommandContext } from './command.ts';
import { render } from './output.ts';
import { EXIT_OK, type ExitCode } from './terminal.ts';
import { ratesOf, topText } from './top.ts';

const clearScreen = '\u001b[H\u001b[2J';
/** Below the table there is to be room for the cursor. */
const spareLines = 2;

/** Shows rates again and again: on a terminal until it is interrupted, in a pipe once. */
export async function watchTop(context: CommandContext): Promise<ExitCode> {
  const { options, source, terminal, clock } = context;
  const { stdout } = terminal;
  const isLive = stdout.isTTY === true && options.output === 'table';
  const rounds = options.count > 0 ? options.count : isLive ? Number.POSITIVE_INFINITY : 1;
  const rows = isLive && stdout.rows !== undefined ? stdout.rows - spareLines : Number.POSITIVE_INFINITY;
  let before = counted(await source.counters());
  for (let round = 0; round < rounds; round++) {
    await new Promise<void>((resolve) => clock.setTimeout(resolve, toMillis(options.interval)));
    const after = counted(await source.counters());
    const items = ratesOf(before, after);
    const report = { apiVersion: API_VERSION, kind: 'Rates', mode: after.mode, time: after.time, items };
    stdout.write((isLive ? clearScreen : '') + render(options.output, report, () => topText(items, rows)));
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
