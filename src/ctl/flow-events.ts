import { API_VERSION } from '../inspect/api.ts';
import type { FlowEvent, FlowItem } from '../inspect/traffic-api.ts';
import { count } from '../lib/count.ts';
import { toMillis } from '../lib/duration.ts';
import { sleep } from '../lib/sleep.ts';
import { messageOf } from '../lib/thrown.ts';
import { type CommandContext, namesText } from './command.ts';
import { isTable } from './flags.ts';
import { flowColumns } from './flow-columns.ts';
import type { FlowEvents } from './source.ts';
import { type Column, type FittedTable, fitTable, leftOutNote } from './table.ts';
import { EXIT_OK, type ExitCode, harmless, type Paint, type Style } from './terminal.ts';
import { streamText } from './watch.ts';

/**
 * Prints events until --count ends it. When the proxy ends the stream, because it restarts for example, writes one line
 * to stderr and goes on as soon as it answers again. Rejects only when the first attempt fails.
 */
export async function followFlows(
  context: CommandContext,
  open: () => Promise<FlowEvents>,
): Promise<ExitCode> {
  const { options, terminal, clock } = context;
  const show = eventPrinter(context);
  let left = options.count > 0 ? options.count : Number.POSITIVE_INFINITY;
  let events: FlowEvents | undefined = await open();
  for (;;) {
    if (events) {
      const { rest, reason } = await drain(events, left, show);
      left = rest;
      if (left <= 0) return EXIT_OK;
      terminal.stderr.write(`The stream of events ended: ${reason}; trying again\n`);
    }
    await sleep(clock, toMillis(options.interval));
    events = await open().catch(() => undefined);
    if (events)
      terminal.stderr.write('The proxy answers again. Events since then follow; earlier ones are missing.\n');
  }
}

/** Shows events until the stream ends or `left` of them were shown; returns how many are still wanted, and the reason. */
async function drain(
  events: FlowEvents,
  left: number,
  show: (events: readonly FlowEvent[]) => void,
): Promise<{ rest: number; reason: string }> {
  let rest = left;
  try {
    for await (const batch of events) {
      show(batch.slice(0, rest));
      rest -= batch.length;
      if (rest <= 0) break;
    }
    return { rest, reason: 'the proxy closed it' };
  } catch (error) {
    return { rest, reason: messageOf(error) };
  }
}

/** Returns a function that prints events in the form of --output. */
function eventPrinter({
  options,
  terminal,
  paint,
  layout,
}: CommandContext): (events: readonly FlowEvent[]) => void {
  const { output } = options;
  const columns = eventColumns(paint);
  let head = '';
  let needs: ReadonlyMap<string, number> = new Map();
  return (events) => {
    if (output === 'name') {
      terminal.stdout.write(namesText(events.flatMap(({ flow }) => flow?.service ?? [])));
    } else if (isTable(output)) {
      const fitted = fitTable(columns, [typicalEvent, ...events], layout, needs);
      needs = fitted.needs;
      const headings = fitted.head === head ? [] : [fitted.head, ...leftOutNote(fitted)];
      head = fitted.head;
      const lines = events.map((event) => lineOf(event, fitted, paint));
      terminal.stdout.write([...headings, ...lines, ''].join('\n'));
    } else {
      terminal.stdout.write(events.map((event) => streamText(output, event)).join(''));
    }
  };
}

const styles: Partial<Record<FlowEvent['event'], Style>> = {
  Ended: 'grey',
  Rejected: 'red',
  Dropped: 'red',
  Filtered: 'red',
};

function eventColumns(paint: Paint): readonly Column<FlowEvent>[] {
  const painted = (event: FlowEvent['event']) => {
    const style = styles[event];
    return style ? paint(style, event) : event;
  };
  return [
    { heading: 'TIME', cell: ({ time }) => clockText(time) },
    { heading: 'EVENT', cell: ({ event }) => painted(event) },
    ...flowColumns.map(ofFlow),
  ];
}

/** The columns that say something of a connection that got no endpoint. */
const ofRefused = ['CLIENT', 'FRONTEND', 'SERVICE PORT'];

function ofFlow(column: Column<FlowItem>): Column<FlowEvent> {
  const { heading, cell, ...rest } = column;
  return {
    heading,
    ...rest,
    // Most events of one kind have the same state.
    ...(heading === 'STATE' && { leaveOut: 0 }),
    cell: ({ flow, reason }) => (flow && (reason === null || ofRefused.includes(heading)) ? cell(flow) : ''),
  };
}

/** A reason stands where other events have the endpoint. It is never cut: it is what the reader looks for. */
function lineOf(event: FlowEvent, table: FittedTable<FlowEvent>, paint: Paint): string {
  if (!event.flow) return lostText(event, paint);
  const line = table.line(event);
  return event.reason === null ? line : `${line}  ${harmless(event.reason)}`;
}

function lostText({ time, count: events }: FlowEvent, paint: Paint): string {
  const lost = `The kernel lost ${count(events, 'event')} about connections: they came too fast.`;
  return `${clockText(time)}  ${paint('yellow', lost)}`;
}

function clockText(time: string): string {
  return new Date(time).toTimeString().slice(0, 8);
}

/** Columns have room for it from the start, so that headings need not be printed again with each longer cell. */
const typicalEvent: FlowEvent = {
  apiVersion: API_VERSION,
  kind: 'FlowEvent',
  time: '2000-01-01T00:00:00Z',
  event: 'Rejected',
  reason: null,
  count: 1,
  flow: {
    family: 'IPv4',
    protocol: 'TCP',
    client: '10.244.100.100:65535',
    frontend: '10.96.100.100:443',
    service: 'namespace/service:http/TCP',
    endpoint: '10.244.100.100:8080',
    pod: 'namespace/service-7d4b9c5f6d-x2x9k',
    state: 'ESTABLISHED',
    ageSeconds: 3660,
    packetsToEndpoint: 1000,
    packetsToClient: 1000,
    bytesToEndpoint: 1000,
    bytesToClient: 1000,
  },
};
