import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { test } from 'node:test';
import fc from 'fast-check';
import { assignSlots } from './slots.ts';

test('what stays keeps its slot and what is new goes last', () => {
  assert.deepEqual(assignSlots(['a', 'b'], ['a', 'b', 'c']), ['a', 'b', 'c']);
  assert.deepEqual(assignSlots(['c', 'a'], ['a', 'b', 'c']), ['c', 'a', 'b']);
});

test('the last slot moves into a hole', () => {
  assert.deepEqual(assignSlots(['a', 'b', 'c', 'd'], ['b', 'c', 'd']), ['d', 'b', 'c']);
  assert.deepEqual(assignSlots(['a', 'b', 'c'], ['a', 'b']), ['a', 'b']);
});

test('a replacement takes the slot of what it replaces', () => {
  assert.deepEqual(assignSlots(['a', 'b', 'c'], ['a', 'x', 'c']), ['a', 'x', 'c']);
});

test('an earlier order with duplicates is repaired', () => {
  assert.deepEqual(assignSlots(['a', 'a', 'b'], ['a', 'b']), ['a', 'b']);
});

test('a million items can be replaced at once', () => {
  const script = `
    import { assignSlots } from ${JSON.stringify(import.meta.resolve('./slots.ts'))};
    const from = (first) => Array.from({ length: 1e6 }, (_, i) => first + i);
    console.log(assignSlots(from(0), from(1e6)).at(-1));`;
  // If the work grows with the square of the number, this takes many minutes, otherwise a second.
  const { stdout } = spawnSync(process.execPath, ['--input-type=module', '-e', script], {
    timeout: 120_000,
    encoding: 'utf8',
  });
  assert.equal(stdout, '1999999\n');
});

test('every wanted item has one slot, and no more slots change than items came or went', () => {
  const items = fc.uniqueArray(fc.integer({ min: 0, max: 30 }), { maxLength: 20 });
  fc.assert(
    fc.property(items, items, (previous, wanted) => {
      const slots = assignSlots(previous, wanted);
      assert.deepEqual(
        [...slots].sort((a, b) => a - b),
        [...wanted].sort((a, b) => a - b),
      );
      const gone = previous.filter((item) => !wanted.includes(item)).length;
      const come = wanted.filter((item) => !previous.includes(item)).length;
      const changed = slots.filter((item, slot) => previous[slot] !== item).length;
      assert.ok(changed <= Math.max(gone, come), `${changed} changes for ${gone} gone and ${come} new`);
    }),
  );
});
