import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { RecentMap } from './recent-map.ts';

const operation = fc.oneof(
  { weight: 20, arbitrary: fc.record({ op: fc.constant('set'), key: fc.nat(9) }) },
  { weight: 5, arbitrary: fc.record({ op: fc.constant('delete'), key: fc.nat(9) }) },
  { weight: 1, arbitrary: fc.record({ op: fc.constant('clear'), key: fc.constant(0) }) },
);

test('holds what was set last, whatever was removed in between', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 5 }),
      fc.array(operation, { maxLength: 200 }),
      (max, operations) => {
        const map = new RecentMap<number, number>(max);
        let expected: [number, number][] = [];
        for (const [i, { op, key }] of operations.entries()) {
          if (op === 'clear') expected = [];
          else expected = expected.filter(([each]) => each !== key);
          if (op === 'set') expected = [...expected, [key, i] as [number, number]].slice(-max);
          if (op === 'set') map.set(key, i);
          else if (op === 'delete') map.delete(key);
          else map.clear();
          assert.deepEqual([...map], expected);
          assert.equal(map.size, expected.length);
          for (const [each, value] of expected) assert.equal(map.get(each), value);
        }
      },
    ),
  );
});
