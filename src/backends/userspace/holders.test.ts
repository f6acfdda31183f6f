import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Holders } from './holders.ts';

test('who has a name keeps it, until it is given up', () => {
  const owners = new Holders();
  assert.ok(owners.claim(':30080/TCP', 'b'));
  assert.ok(!owners.claim(':30080/TCP', 'a'));
  assert.ok(owners.claim(':30080/TCP', 'b'));
  assert.equal(owners.owner(':30080/TCP'), 'b');
  owners.retain('b', new Set());
  assert.ok(owners.claim(':30080/TCP', 'a'));
});

test('what is retained stays, and giving up what one has not changes nothing', () => {
  const owners = new Holders();
  owners.claim('x', 'a');
  owners.claim('y', 'a');
  owners.retain('a', new Set(['y']));
  owners.retain('nobody', new Set());
  assert.deepEqual([owners.owner('x'), owners.owner('y')], [undefined, 'a']);
});
