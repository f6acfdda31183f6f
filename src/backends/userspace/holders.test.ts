import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Holders } from './holders.ts';

test('who has a name keeps it, until it is given up', () => {
  const holders = new Holders();
  assert.ok(holders.claim(':30080/TCP', 'b'));
  assert.ok(!holders.claim(':30080/TCP', 'a'));
  assert.ok(holders.claim(':30080/TCP', 'b'));
  assert.equal(holders.holder(':30080/TCP'), 'b');
  holders.retain('b', new Set());
  assert.ok(holders.claim(':30080/TCP', 'a'));
});

test('what is retained stays, and giving up what one has not changes nothing', () => {
  const holders = new Holders();
  holders.claim('x', 'a');
  holders.claim('y', 'a');
  holders.retain('a', new Set(['y']));
  holders.retain('nobody', new Set());
  assert.deepEqual([holders.holder('x'), holders.holder('y')], [undefined, 'a']);
});
