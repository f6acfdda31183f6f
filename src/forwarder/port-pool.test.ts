import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { PortPool, parsePortRange } from './port-pool.ts';

test('a port range is first-last, first+count, a single port, or empty', () => {
  assert.deepEqual(parsePortRange('36000-36001'), { first: 36000, last: 36001 });
  assert.deepEqual(parsePortRange('36000+10'), { first: 36000, last: 36010 });
  assert.deepEqual(parsePortRange('36000'), { first: 36000, last: 36000 });
  for (const text of ['', '0', '0-0']) assert.equal(parsePortRange(text), undefined);
});

test('parsePortRange throws an error that quotes an invalid text', () => {
  const bad = ['x', '1-', '-1', '10-9', '65536', '65000+536', '1-70000', '1-2-3', '1,2', '9999999999'];
  for (const text of bad)
    assert.throws(
      () => parsePortRange(text),
      (error: Error) => error.message.includes(`"${text}"`),
    );
});

test('parsePortRange returns ports up to 65535 or throws, for any text', () => {
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

test('a pool allocates each port of its range once, and a released port again', () => {
  const pool = new PortPool({ first: 36000, last: 36009 }, Math.random);
  const given = Array.from({ length: 10 }, () => pool.allocate());
  assert.deepEqual(
    given.toSorted(),
    Array.from({ length: 10 }, (_, i) => 36000 + i),
  );
  assert.throws(() => pool.allocate(), /no ports remaining in 36000-36009/);
  pool.release(36004);
  assert.equal(pool.allocate(), 36004);
});

test('without a range a pool allocates port 0', () => {
  const pool = new PortPool(undefined, Math.random);
  assert.deepEqual([pool.allocate(), pool.allocate()], [0, 0]);
  pool.release(0);
});
