import { toMillis } from '../lib/duration.ts';
import { sleep } from '../lib/sleep.ts';
import { messageOf } from '../lib/thrown.ts';
import { type CommandContext, dataText, namesText } from './command.ts';
import { isTable } from './flags.ts';
import { type Column, fitTable, leftOutNote } from './table.ts';

/**
 * Passes `first` and then later answers of `look` to `show`, until --count ends it; returns the last answer. When a look
 * fails, writes one line to stderr and goes on: the proxy may be about to restart.
 */
export async function watch<T>(
  { options, terminal, clock }: CommandContext,
  first: T,
  look: () => Promise<T>,
  show: (answer: T) => void,
): Promise<T> {
  let last = first;
  let isFailing = false;
  show(first);
  for (let looks = 1; looks !== options.count; looks++) {
    await sleep(clock, toMillis(options.interval));
    try {
      last = await look();
      isFailing = false;
    } catch (error) {
      if (!isFailing) terminal.stderr.write(`Error: ${messageOf(error)}; trying again\n`);
      isFailing = true;
      continue;
    }
    show(last);
  }
  return last;
}

/** Returns a function that prints an answer unless `lasting` finds it equal to the one before. */
export function answerChanges<T extends { readonly time: string }>(
  { options, terminal }: CommandContext,
  lasting: (answer: T) => object,
  text: (answer: T) => string,
): (answer: T) => void {
  const { output } = options;
  let before = '';
  return (answer) => {
    const now = JSON.stringify(lasting(answer));
    if (now === before) return;
    const gap = before === '' ? '' : '\n';
    before = now;
    if (output === 'json' || output === 'yaml') terminal.stdout.write(streamText(output, answer));
    else terminal.stdout.write(`${gap}${answer.time}\n${text(answer)}`);
  };
}

/** A list of items that is watched. */
export interface Listing<T> {
  readonly columns: readonly Column<T>[];
  /** The identity of an item. */
  readonly keyOf: (item: T) => string;
  /** What -o name prints. */
  readonly nameOf: (item: T) => string;
}

/** A change of one item between two looks, in the words of kubectl. */
export interface WatchEvent<T> {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED';
  readonly object: T;
}

/** Returns a function that prints how a list differs from the one before; the first time, all of it. */
export function listChanges<T extends object>(
  context: CommandContext,
  { columns, keyOf, nameOf }: Listing<T>,
): (items: readonly T[]) => void {
  const { options, terminal, layout, clock } = context;
  const { output } = options;
  const table = [...eventColumns(() => clock.now()), ...columns.map(ofObject)];
  let before: ReadonlyMap<string, Known<T>> = new Map();
  let head = '';
  let needs: ReadonlyMap<string, number> = new Map();
  return (items) => {
    const now = new Map(items.map((item) => [keyOf(item), { item, text: JSON.stringify(item) }]));
    const events = eventsBetween(before, now);
    before = now;
    if (output === 'name') terminal.stdout.write(namesText(events.map(({ object }) => nameOf(object))));
    else if (!isTable(output)) for (const event of events) terminal.stdout.write(streamText(output, event));
    else if (events.length > 0 || head === '') {
      // Fitted to all items, and to earlier ones, so that lines stay below the headings.
      const all = items.map((object): WatchEvent<T> => ({ type: 'MODIFIED', object }));
      const fitted = fitTable(table, [...all, ...events], layout, needs);
      needs = fitted.needs;
      const headings = fitted.head === head ? [] : [fitted.head, ...leftOutNote(fitted)];
      head = fitted.head;
      terminal.stdout.write([...headings, ...events.map(fitted.line), ''].join('\n'));
    }
  };
}

interface Known<T> {
  readonly item: T;
  readonly text: string;
}

function eventsBetween<T>(
  before: ReadonlyMap<string, Known<T>>,
  now: ReadonlyMap<string, Known<T>>,
): WatchEvent<T>[] {
  const events: WatchEvent<T>[] = [];
  for (const [key, { item }] of before) if (!now.has(key)) events.push({ type: 'DELETED', object: item });
  for (const [key, { item, text }] of now) {
    const known = before.get(key);
    if (known?.text !== text) events.push({ type: known ? 'MODIFIED' : 'ADDED', object: item });
  }
  return events;
}

/** One of several answers: a line of JSON, or a document of YAML. */
export function streamText(form: 'json' | 'yaml', answer: object): string {
  return form === 'json' ? dataText(form, answer, 0) : `---\n${dataText(form, answer)}`;
}

function eventColumns<T>(now: () => number): Column<WatchEvent<T>>[] {
  return [
    { heading: 'TIME', cell: () => new Date(now()).toTimeString().slice(0, 8), leaveOut: 0 },
    { heading: 'EVENT', cell: ({ type }) => type },
  ];
}

function ofObject<T>(column: Column<T>): Column<WatchEvent<T>> {
  return { ...column, cell: ({ object }) => column.cell(object) };
}
