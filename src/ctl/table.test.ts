import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fieldsText, tableText } from './table.ts';

test('columns are as wide as they need to be, and no line ends in blanks', () => {
  const text = tableText(
    ['NAME', 'N'],
    [
      ['a', '1'],
      ['longer', ''],
    ],
  );
  assert.equal(text, 'NAME    N\na       1\nlonger\n');
});

test('colours take no room', () => {
  const red = (text: string) => `\u001b[31m${text}\u001b[0m`;
  assert.equal(tableText(['A', 'B'], [[red('xx'), 'y']]), `A   B\n${red('xx')}  y\n`);
});

test('fields without a value are left out', () => {
  assert.equal(
    fieldsText([
      ['a', '1'],
      ['long', ''],
      ['b', undefined],
      ['ccc', '2'],
    ]),
    '  a    1\n  ccc  2\n',
  );
});
