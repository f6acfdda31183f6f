import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { Claims } from './claims.ts';

test('a thing is claimed while anybody claims it, and the smallest name is first', () => {
  const claims = new Claims();
  for (const claimant of ['b', 'c', 'a', 'b']) claims.claim('x', claimant);
  assert.deepEqual(claims.of('x'), ['a', 'b', 'c']);
  assert.equal(claims.first('x'), 'a');
  claims.release('x', 'a');
  claims.release('x', 'c');
  claims.release('x', 'nobody');
  assert.deepEqual([claims.first('x'), claims.size], ['b', 1]);
  claims.release('x', 'b');
  assert.deepEqual(
    [claims.has('x'), claims.first('x'), claims.of('x'), claims.size],
    [false, undefined, [], 0],
  );
  claims.release('x', 'b');
});

test('it is a set of names for each thing, whatever the order', () => {
  const step = fc.record({
    action: fc.constantFrom('claim' as const, 'release' as const),
    thing: fc.constantFrom('x', 'y'),
    claimant: fc.constantFrom('a', 'b', 'c'),
  });
  fc.assert(
    fc.property(fc.array(step), (steps) => {
      const claims = new Claims();
      const model = { x: new Set<string>(), y: new Set<string>() };
      for (const { action, thing, claimant } of steps) {
        claims[action](thing as 'x' | 'y', claimant);
        model[thing as 'x' | 'y'][action === 'claim' ? 'add' : 'delete'](claimant);
      }
      for (const thing of ['x', 'y'] as const) {
        assert.deepEqual(claims.of(thing), [...model[thing]].sort());
        assert.equal(claims.has(thing), model[thing].size > 0);
      }
      assert.deepEqual([...claims.things()].length, claims.size);
    }),
  );
});
