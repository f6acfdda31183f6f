import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FakeClock } from '../../test/fake-clock.ts';
import type { CommandContext } from './command.ts';
import { type CtlOptions, defaultOptions } from './flags.ts';
import type { ReportSource } from './source.ts';
import { unlimited } from './table.ts';
import { type Listing, listChanges, watch } from './watch.ts';

interface Item {
  readonly name: string;
  readonly state: string;
}

const listing: Listing<Item> = {
  columns: [
    { heading: 'NAME', cell: ({ name }) => name },
    { heading: 'STATE', cell: ({ state }) => state },
  ],
  keyOf: ({ name }) => name,
  nameOf: ({ name }) => name,
};

function setUp(options: Partial<CtlOptions> = {}) {
  const written = { stdout: '', stderr: '' };
  const clock = new FakeClock();
  const context: CommandContext = {
    args: [],
    options: { ...defaultOptions, ...options },
    source: {} as ReportSource,
    terminal: {
      stdout: { write: (text: string) => (written.stdout += text) },
      stderr: { write: (text: string) => (written.stderr += text) },
      env: {},
    },
    paint: (_style, text) => text,
    layout: unlimited,
    clock,
  };
  return { context, written, clock };
}

const a = { name: 'a', state: 'not ready' };
const b = { name: 'b', state: 'ready' };

/** What is printed for these lists, without times. */
function printed(options: Partial<CtlOptions>, ...lists: Item[][]): string[] {
  const { context, written } = setUp(options);
  const show = listChanges(context, listing);
  for (const list of lists) show(list);
  return written.stdout
    .trimEnd()
    .split('\n')
    .map((line) => line.replace(/^\d\d:\d\d:\d\d/, 'hh:mm:ss'));
}

test('a watched list is printed once, then each item that was added, modified or deleted', () => {
  assert.deepEqual(printed({}, [a, b], [a, b], [{ ...a, state: 'ready' }], [{ ...a, state: 'ready' }, b]), [
    'TIME      EVENT     NAME  STATE',
    'hh:mm:ss  ADDED     a     not ready',
    'hh:mm:ss  ADDED     b     ready',
    'hh:mm:ss  DELETED   b     ready',
    'hh:mm:ss  MODIFIED  a     ready',
    'hh:mm:ss  ADDED     b     ready',
  ]);
});

test('the headings of a watched list are printed again when a column gets wider', () => {
  const lines = printed({}, [a], [a, { name: 'a-long-name', state: 'ready' }]);
  assert.deepEqual(lines.slice(2), [
    'TIME      EVENT     NAME         STATE',
    'hh:mm:ss  ADDED     a-long-name  ready',
  ]);
});

test('a watched list is a stream of JSON lines, of YAML documents, or of names', () => {
  assert.deepEqual(printed({ output: 'json' }, [b], []), [
    '{"type":"ADDED","object":{"name":"b","state":"ready"}}',
    '{"type":"DELETED","object":{"name":"b","state":"ready"}}',
  ]);
  assert.equal(printed({ output: 'yaml' }, [b])[0], '---');
  assert.deepEqual(printed({ output: 'name' }, [a, b], [a, b], [b]), ['a', 'b', 'a']);
});

test('watching goes on while the proxy does not answer, with one line per outage, and ends after --count', async () => {
  const { context, written, clock } = setUp({ count: 6 });
  const answers = ['two', undefined, undefined, 'five', undefined];
  const shown: string[] = [];
  const last = watch(
    context,
    'one',
    async () => {
      const answer = answers.shift();
      if (answer === undefined) throw new Error('gone');
      return answer;
    },
    (answer) => shown.push(answer),
  );
  for (let i = 0; i < 5; i++) await clock.advance(2_000);
  assert.equal(await last, 'five');
  assert.deepEqual(shown, ['one', 'two', 'five']);
  assert.equal(written.stderr, 'Error: gone; trying again\nError: gone; trying again\n');
});
