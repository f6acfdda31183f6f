import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { NoPortError, PortPool } from './port-pool.ts';
import { parsePortRange } from './port-range.ts';

test('ranges: both ends, a start and how many more, a single port, or none', () => {
  assert.deepEqual(parsePortRange('36000-36001'), { first: 36000, last: 36001 });
  assert.deepEqual(parsePortRange('36000+10'), { first: 36000, last: 36010 });
  assert.deepEqual(parsePortRange('36000'), { first: 36000, last: 36000 });
  for (const text of ['', '0', '0-0']) assert.equal(parsePortRange(text), undefined);
});

test('what is no range is refused with its text', () => {
  const bad = ['x', '1-', '-1', '10-9', '65536', '65000+536', '1-70000', '1-2-3', '1,2', '9999999999'];
  for (const text of bad)
    assert.throws(
      () => parsePortRange(text),
      (error: Error) => error.message.includes(`"${text}"`),
    );
});

test('any text is a range within bounds or an error', () => {
  fc.assert(
    fc.property(fc.string(), (text) => {
      let range: ReturnType<typeof parsePortRange>;
      try {
        range = parsePortRange(text);
      } catch {
        return;
      }
      assert.ok(!range || (range.first <= range.last && range.last <= 65_535));
    }),
  );
});

test('every port of a range is given once, then none, then what was released', () => {
  const pool = new PortPool({ first: 36000, last: 36009 }, Math.random);
  const given = Array.from({ length: 10 }, () => pool.allocate());
  assert.deepEqual(
    given.toSorted(),
    Array.from({ length: 10 }, (_, i) => 36000 + i),
  );
  assert.throws(() => pool.allocate(), NoPortError);
  pool.release(36004);
  assert.equal(pool.allocate(), 36004);
});

test('without a range the system chooses', () => {
  const pool = new PortPool(undefined, Math.random);
  assert.deepEqual([pool.allocate(), pool.allocate()], [0, 0]);
  pool.release(0);
});
