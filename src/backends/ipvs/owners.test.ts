import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { Owners } from './owners.ts';

test('a thing is wanted while anybody wants it, and the smallest name is first', () => {
  const owners = new Owners();
  for (const owner of ['b', 'c', 'a', 'b']) owners.claim('x', owner);
  assert.deepEqual(owners.of('x'), ['a', 'b', 'c']);
  assert.equal(owners.first('x'), 'a');
  owners.release('x', 'a');
  owners.release('x', 'c');
  owners.release('x', 'nobody');
  assert.deepEqual([owners.first('x'), owners.size], ['b', 1]);
  owners.release('x', 'b');
  assert.deepEqual(
    [owners.has('x'), owners.first('x'), owners.of('x'), owners.size],
    [false, undefined, [], 0],
  );
  owners.release('x', 'b');
});

test('it is a set of names for each thing, whatever the order', () => {
  const step = fc.record({
    action: fc.constantFrom('claim' as const, 'release' as const),
    thing: fc.constantFrom('x', 'y'),
    owner: fc.constantFrom('a', 'b', 'c'),
  });
  fc.assert(
    fc.property(fc.array(step), (steps) => {
      const owners = new Owners();
      const model = { x: new Set<string>(), y: new Set<string>() };
      for (const { action, thing, owner } of steps) {
        owners[action](thing as 'x' | 'y', owner);
        model[thing as 'x' | 'y'][action === 'claim' ? 'add' : 'delete'](owner);
      }
      for (const thing of ['x', 'y'] as const) {
        assert.deepEqual(owners.of(thing), [...model[thing]].sort());
        assert.equal(owners.has(thing), model[thing].size > 0);
      }
      assert.deepEqual([...owners.things()].length, owners.size);
    }),
  );
});
