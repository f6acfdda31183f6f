import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Column, itemsText, type Layout } from './table.ts';

interface Item {
  readonly name: string;
  readonly why: string;
}

const columns: readonly Column<Item>[] = [
  { heading: 'NAME', cell: ({ name }) => name },
  { heading: 'SIZE', cell: ({ name }) => String(name.length), leaveOut: 2 },
  { heading: 'SEEN', cell: () => 'now', leaveOut: 1 },
  { heading: 'MORE', cell: () => 'x', isExtra: true },
  { heading: 'WHY', cell: ({ why }) => why, least: 10 },
];
const items: readonly Item[] = [
  { name: 'shop/web', why: 'internalTrafficPolicy is Cluster' },
  { name: 'shop/cart', why: 'no reason' },
];

function text(layout: Partial<Layout>): string[] {
  return itemsText(columns, items, { width: undefined, isWide: false, ...layout })
    .trimEnd()
    .split('\n');
}

test('without a width, a table has every column and every character', () => {
  assert.deepEqual(text({}), [
    'NAME       SIZE  SEEN  WHY',
    'shop/web   8     now   internalTrafficPolicy is Cluster',
    'shop/cart  9     now   no reason',
  ]);
});

test('-o wide adds the extra columns', () => {
  assert.equal(text({ isWide: true })[0], 'NAME       SIZE  SEEN  MORE  WHY');
});

test('on a narrow terminal, text is cut before columns are left out', () => {
  assert.deepEqual(text({ width: 40 }), [
    'NAME       SIZE  SEEN  WHY',
    'shop/web   8     now   internalTrafficP…',
    'shop/cart  9     now   no reason',
  ]);
  assert.deepEqual(text({ width: 30 }), [
    'NAME       SIZE  WHY',
    'shop/web   8     internalTraf…',
    'shop/cart  9     no reason',
    '(-o wide also shows SEEN)',
  ]);
});

test('on a narrow terminal, a column without values is left out before anything is cut', () => {
  const blank: Column<Item> = { heading: 'HINTS', cell: () => '-', leaveOut: 9 };
  const lines = itemsText([...columns, blank], items, { width: 55, isWide: false }).split('\n');
  assert.equal(lines[1], 'shop/web   8     now   internalTrafficPolicy is Cluster');
  assert.equal(lines[3], '(-o wide also shows HINTS)');
});

test('a table fits any terminal with room for its narrowest cells', () => {
  for (let width = 18; width < 100; width++) {
    for (const line of text({ width })) {
      if (!line.startsWith('(')) assert.ok(line.length <= width, `${width}: ${line}`);
    }
  }
});

test('a cell that is cut keeps its colour', () => {
  const red = (words: string) => `\u001b[31m${words}\u001b[0m`;
  const painted: Column<string>[] = [{ heading: 'A', cell: red, least: 4 }];
  assert.equal(itemsText(painted, ['abcdefgh'], { width: 5, isWide: false }), `A\n${red('abcd…')}\n`);
});

test('control characters in a cell do not reach the terminal and do not shift columns', () => {
  const columns = [
    { heading: 'NAME', cell: ({ name }: { readonly name: string }) => name },
    { heading: 'STATE', cell: () => 'ready' },
  ];
  assert.equal(itemsText(columns, [{ name: 'a\u001b[2J\nb' }]), 'NAME     STATE\na?[2J?b  ready\n');
});
