import assert from 'node:assert/strict';
import { test } from 'node:test';
import { inGroups } from './groups.ts';

test('items come in groups of the given size and the rest in a smaller one', () => {
  assert.deepEqual([...inGroups([1, 2, 3, 4, 5], 2)], [[1, 2], [3, 4], [5]]);
  assert.deepEqual([...inGroups(new Set([1, 2]), 2)], [[1, 2]]);
  assert.deepEqual([...inGroups([], 2)], []);
});
