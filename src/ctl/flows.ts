import { isAddress } from '../inspect/selection.ts';
import type { FlowItem } from '../inspect/traffic-api.ts';
import { type CommandContext, print } from './command.ts';
import { errorLines, requireLook } from './family-errors.ts';
import { isTable } from './flags.ts';
import { flowColumns } from './flow-columns.ts';
import { followFlows } from './flow-events.ts';
import { requireSome, selectorOf } from './selector.ts';
import type { FlowQuestion } from './source.ts';
import { itemsText } from './table.ts';
import { EXIT_OK, type ExitCode } from './terminal.ts';

/** Shows the flows that there are now, or with --watch how they begin and end. */
export async function showFlows(context: CommandContext): Promise<ExitCode> {
  const { options, source, terminal, layout } = context;
  const question = questionOf(context);
  if (options.watch) {
    await requireService(context);
    return followFlows(context, () => source.watchFlows(question));
  }
  const report = await source.flows(question);
  requireLook(report.families, report.items);
  const items = sorted(report.items);
  if (items.length === 0) await requireService(context);
  print(
    context,
    { ...report, items },
    () => itemsText(flowColumns, items, layout),
    () => items.map(({ service }) => service),
  );
  if (isTable(options.output)) {
    for (const line of errorLines(report.families)) terminal.stderr.write(`${line}\n`);
    if (items.length === 0) terminal.stderr.write('There is no such flow now.\n');
  }
  return EXIT_OK;
}

/** Throws when there is no Service of the name. Any address is possible: it may be that of a client. */
async function requireService(context: CommandContext): Promise<void> {
  const selector = selectorOf(context);
  if (selector.name === undefined || isAddress(selector.name)) return;
  requireSome((await context.source.services(selector)).items, selector);
}

function questionOf(context: CommandContext): FlowQuestion {
  const { client, endpoint, pod, protocol, state } = context.options;
  return {
    ...selectorOf(context),
    ...(client !== '' && { client }),
    ...(endpoint !== '' && { endpoint }),
    ...(pod !== '' && { pod }),
    ...(protocol !== undefined && { protocol }),
    ...(state !== undefined && { state }),
  };
}

/** By Service, then by client. */
function sorted(items: readonly FlowItem[]): FlowItem[] {
  const keyed = items.map((item) => ({ item, key: `${item.service} ${item.client} ${item.frontend}` }));
  return keyed.sort((a, b) => (a.key < b.key ? -1 : a.key > b.key ? 1 : 0)).map(({ item }) => item);
}
