import assert from 'node:assert/strict';
import { test } from 'node:test';
import { count } from '../lib/count.ts';
import { agoText, fieldsText, percentText, spanText, tableText } from './text.ts';

test('each column of a table is as wide as its widest cell, and no line ends in blanks', () => {
  const text = tableText(
    ['NAME', 'N'],
    [
      ['a', '1'],
      ['longer', ''],
    ],
  );
  assert.equal(text, 'NAME    N\na       1\nlonger\n');
});

test('colours do not widen a column of a table', () => {
  const red = (text: string) => `\u001b[31m${text}\u001b[0m`;
  assert.equal(tableText(['A', 'B'], [[red('xx'), 'y']]), `A   B\n${red('xx')}  y\n`);
});

test('fields without a value are left out of the text', () => {
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

for (const [ms, text] of [
  [-5, '0ms'],
  [0, '0ms'],
  [19.6, '20ms'],
  [999.4, '999ms'],
  [1_000, '1s'],
  [59_999, '59s'],
  [60_000, '1m'],
  [310_000, '5m10s'],
  [3_600_000, '1h'],
  [3_605_000, '1h'],
  [90_061_000, '1d1h'],
] as const) {
  test(`a time span of ${ms} ms is shown as ${text}`, () => assert.equal(spanText(ms), text));
}

test('times, numbers and shares are formatted for people', () => {
  assert.equal(agoText('2026-01-01T00:00:00Z', '2026-01-01T00:02:30Z'), '2m30s ago');
  assert.deepEqual(
    [count(0, 'change'), count(1, 'change'), count(2, 'change')],
    ['0 changes', '1 change', '2 changes'],
  );
  assert.deepEqual([percentText(1), percentText(1 / 3)], ['100.0 %', '33.3 %']);
});
