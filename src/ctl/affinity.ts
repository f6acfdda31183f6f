import { podText } from '../inspect/pod-text.ts';
import type { AffinityItem, AffinityReport } from '../inspect/traffic-api.ts';
import { count } from '../lib/count.ts';
import { type CommandContext, print } from './command.ts';
import { errorLines, requireLook } from './family-errors.ts';
import { isTable } from './flags.ts';
import { requireSome, selectorOf } from './selector.ts';
import type { AffinityQuestion } from './source.ts';
import { type Column, itemsText } from './table.ts';
import { EXIT_OK, type ExitCode } from './terminal.ts';
import { spanText } from './text.ts';

const columns: readonly Column<AffinityItem>[] = [
  { heading: 'SERVICE PORT', cell: ({ service }) => service, least: 16 },
  { heading: 'CLIENT', cell: ({ client }) => client },
  { heading: 'ENDPOINT', cell: ({ endpoint }) => endpoint },
  { heading: 'POD', cell: podText, least: 12, leaveOut: 2 },
  { heading: 'TIME LEFT', cell: ({ secondsLeft }) => spanText(secondsLeft * 1000) },
  { heading: 'FAMILY', cell: ({ family }) => family, isExtra: true },
];

/** In some modes a binding holds for one frontend only. */
const frontendColumn: Column<AffinityItem> = {
  heading: 'FRONTEND',
  cell: ({ frontend }) => frontend ?? '-',
  leaveOut: 1,
};

/** Shows which clients are bound to which endpoints, and for how long. */
export async function showAffinity(context: CommandContext): Promise<ExitCode> {
  const { options, source, terminal, layout } = context;
  const report = await source.affinity(questionOf(context));
  const { items, families } = report;
  requireLook(families, items);
  const notes = items.length === 0 ? await whyNone(context) : leftOutNote(report);
  const shown = items.some(({ frontend }) => frontend !== null) ? [...columns, frontendColumn] : columns;
  print(
    context,
    report,
    () => itemsText(shown, items, layout),
    () => items.map(({ service }) => service),
  );
  if (isTable(options.output)) {
    for (const line of [...errorLines(families), ...notes]) terminal.stderr.write(`${line}\n`);
  }
  return EXIT_OK;
}

function questionOf(context: CommandContext): AffinityQuestion {
  const { client, endpoint, limit } = context.options;
  return {
    ...selectorOf(context),
    ...(client !== '' && { client }),
    ...(endpoint !== '' && { endpoint }),
    limit: String(limit),
  };
}

function leftOutNote({ leftOut }: AffinityReport): string[] {
  return leftOut === 0 ? [] : [`Not shown: ${count(leftOut, 'client')} with less time left; see --limit.`];
}

/** Throws when there is no Service of the name. */
async function whyNone(context: CommandContext): Promise<string[]> {
  const selector = selectorOf(context);
  const { items } = await context.source.services(selector);
  requireSome(items, selector);
  if (items.some(({ affinitySeconds }) => affinitySeconds > 0)) return ['No such client is bound now.'];
  const who = selector.name === undefined ? 'No Service has' : `${selector.name} has no`;
  return [`${who} client affinity (sessionAffinity: ClientIP).`];
}
