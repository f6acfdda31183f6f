import assert from 'node:assert/strict';
import { test } from 'node:test';
import { rangeOf } from './virtual-rows.ts';

test('the rows in the window are drawn, and a few around them', () => {
  assert.deepEqual(rangeOf(300, 900, 30, 50_000), { first: 0, end: 36 });
  assert.deepEqual(rangeOf(-30_000, 900, 30, 50_000), { first: 984, end: 1046 });
  assert.deepEqual(rangeOf(-1_499_400, 900, 30, 50_000), { first: 49_964, end: 50_000 });
});

test('a table below the window has rows, one that shrank has its last ones', () => {
  assert.deepEqual(rangeOf(2_000, 900, 30, 50_000), { first: 0, end: 16 });
  assert.deepEqual(rangeOf(-30_000, 900, 30, 20), { first: 19, end: 20 });
  assert.deepEqual(rangeOf(0, 900, 30, 0), { first: 0, end: 0 });
});
