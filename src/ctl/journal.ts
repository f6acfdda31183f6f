import type { JournalItem, JournalReport } from '../inspect/api.ts';
import { whatText } from '../inspect/journal-words.ts';
import type { Selector } from '../inspect/selection.ts';
import { count } from '../lib/count.ts';
import { type CommandContext, print } from './command.ts';
import { isTable } from './flags.ts';
import { namespaceOf, selectorOf } from './selector.ts';
import { type Column, fitTable, itemsText } from './table.ts';
import { EXIT_OK, type ExitCode, type Paint, type Style } from './terminal.ts';
import { spanText } from './text.ts';
import { streamText, watch } from './watch.ts';

/** Shows the journal, or with --watch the journal and then what is added to it. */
export async function showJournal(context: CommandContext): Promise<ExitCode> {
  const { options, source, paint, layout } = context;
  const selector = selectorOf(context);
  const since = options.since === '' ? {} : { since: options.since };
  const look = () => source.journal({ ...selector, ...since });
  const report = await look();
  if (options.watch) await watch(context, report, look, additions(context));
  else print(context, report, () => itemsText(journalColumns(paint), report.items, layout));
  if (isTable(options.output)) noteGaps(context, report, selector);
  return EXIT_OK;
}

/** Says on stderr what the lines do not show. */
function noteGaps({ options, terminal }: CommandContext, report: JournalReport, { name }: Selector): void {
  const { items, since, unnamed } = report;
  const { namespace } = namespaceOf(options);
  const about = name ?? (namespace === undefined ? undefined : `namespace ${namespace}`);
  const subject = about === undefined ? '' : ` about ${about}`;
  if (items.length === 0)
    terminal.stderr.write(`Nothing${subject} is in the journal, which begins ${since}.\n`);
  if (about !== undefined && unnamed > 0) {
    terminal.stderr.write(
      `Left out: ${count(unnamed, 'line')} about more Services than the journal names, perhaps also about ${about}.\n`,
    );
  }
}

const styles: Partial<Record<JournalItem['event'], Style>> = {
  SyncFailed: 'red',
  Problem: 'red',
  Repair: 'yellow',
  NotProgrammed: 'yellow',
  WatchLost: 'yellow',
  Configuration: 'yellow',
};

export function journalColumns(paint: Paint): readonly Column<JournalItem>[] {
  const painted = (event: JournalItem['event']) => {
    const style = styles[event];
    return style ? paint(style, event) : event;
  };
  return [
    { heading: 'TIME', cell: ({ time }) => new Date(time).toTimeString().slice(0, 8) },
    { heading: 'EVENT', cell: ({ event }) => painted(event) },
    { heading: 'FAMILY', cell: ({ family }) => family ?? '-', leaveOut: 1 },
    { heading: 'TOOK', cell: ({ sync }) => secondsText(sync?.seconds), leaveOut: 2 },
    { heading: 'FROM ARRIVAL', cell: ({ sync }) => secondsText(sync?.waitSeconds), isExtra: true },
    { heading: 'FROM API', cell: ({ sync }) => secondsText(sync?.latencySeconds), leaveOut: 3 },
    { heading: 'WHAT', cell: whatText, least: 30 },
  ];
}

function secondsText(seconds: number | null | undefined): string {
  return seconds === undefined || seconds === null ? '-' : spanText(seconds * 1000);
}

/** Returns a function that prints the items that are new or have grown since the last call. */
function additions({ options, terminal, paint, layout }: CommandContext): (report: JournalReport) => void {
  const { output } = options;
  const columns = journalColumns(paint);
  let shown = new Set<string>();
  let head = '';
  return ({ items }) => {
    const now = new Set(items.map((item) => JSON.stringify(item)));
    const added = items.filter((item) => !shown.has(JSON.stringify(item)));
    shown = now;
    if (output === 'json' || output === 'yaml') {
      for (const item of added) terminal.stdout.write(streamText(output, item));
      return;
    }
    const table = fitTable(columns, items, layout);
    const headings = head === '' ? [table.head] : [];
    head = table.head;
    terminal.stdout.write([...headings, ...added.map(table.line), ''].join('\n'));
  };
}
