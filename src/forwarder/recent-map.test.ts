import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import fc from 'fast-check';
import { RecentMap } from './recent-map.ts';

const operation = fc.oneof(
  { weight: 20, arbitrary: fc.record({ op: fc.constant('set'), key: fc.nat(9) }) },
  { weight: 5, arbitrary: fc.record({ op: fc.constant('delete'), key: fc.nat(9) }) },
  { weight: 3, arbitrary: fc.record({ op: fc.constant('drop'), key: fc.constant(0) }) },
  { weight: 1, arbitrary: fc.record({ op: fc.constant('clear'), key: fc.constant(0) }) },
);

test('entries are ordered by when they were last set, over random operations', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 5 }),
      fc.array(operation, { maxLength: 200 }),
      (max, operations) => {
        const map = new RecentMap<number, number>(max);
        let expected: [number, number][] = [];
        for (const [i, { op, key }] of operations.entries()) {
          const [oldest] = expected;
          if (op === 'clear') expected = [];
          else if (op === 'drop') expected = expected.slice(1);
          else expected = expected.filter(([each]) => each !== key);
          if (op === 'set') expected = [...expected, [key, i] as [number, number]].slice(-max);
          if (op === 'set') map.set(key, i);
          else if (op === 'delete') map.delete(key);
          else if (op === 'drop') assert.equal(map.dropOldest(), oldest?.[1]);
          else map.clear();
          assert.deepEqual([...map], expected);
          assert.equal(map.size, expected.length);
          for (const [each, value] of expected) assert.equal(map.get(each), value);
        }
      },
    ),
  );
});

test('a loop may delete entries and still visits all others', () => {
  const map = new RecentMap<number, string>();
  for (let key = 0; key < 6; key++) map.set(key, 'x');
  for (const [key] of map) if (key % 3 !== 1) map.delete(key);
  assert.deepEqual(
    [...map].map(([key]) => key),
    [1, 4],
  );
});

test('setting the same entries repeatedly does not grow memory', () => {
  setFlagsFromString('--expose-gc');
  const collect: () => void = runInNewContext('gc');
  const heap = (): number => {
    collect();
    return process.memoryUsage().heapUsed;
  };
  const map = new RecentMap<number, number>();
  const before = heap();
  for (let i = 0; i < 200_000; i++) map.set(i % 100, i);
  assert.ok(heap() - before < 1 << 20, `${heap() - before} bytes more`);
  assert.equal(map.size, 100);
});
