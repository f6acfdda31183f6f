import assert from 'node:assert/strict';
import { test } from 'node:test';
import { amountText } from './quantity-text.ts';

const amounts: readonly [number | null, string][] = [
  [null, '-'],
  [0, '0'],
  [0.04, '0.0'],
  [0.44, '0.4'],
  [7, '7'],
  [97.4, '97'],
  [999, '999'],
  [999.6, '1.0k'],
  [1234, '1.2k'],
  [9_960, '10k'],
  [345_678_901, '346M'],
  [2.5e9, '2.5G'],
  [12e15, '12000T'],
];

for (const [n, text] of amounts) {
  test(`the amount ${n} is written as ${text}`, () => assert.equal(amountText(n), text));
}
