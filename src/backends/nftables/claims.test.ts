import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Claims, SharedKeys } from './claims.ts';

test('the smallest claimant owns a frontend, whatever the order of claims', () => {
  const claims = new Claims();
  claims.claim('vip', '1b');
  assert.equal(claims.owner('vip'), '1b');
  claims.claim('vip', '1a');
  claims.claim('vip', '0z');
  assert.equal(claims.owner('vip'), '0z');
  claims.release('vip', '0z');
  assert.equal(claims.owner('vip'), '1a');
  claims.release('vip', '1b');
  assert.equal(claims.owner('vip'), '1a');
  claims.release('vip', '1a');
  assert.equal(claims.owner('vip'), undefined);
});

test('claiming twice is claiming once', () => {
  const claims = new Claims();
  claims.claim('vip', '1a');
  claims.claim('vip', '1a');
  claims.release('vip', '1a');
  assert.equal(claims.owner('vip'), undefined);
});

test('a shared key stays until nobody needs it', () => {
  const keys = new SharedKeys();
  keys.add('ip');
  keys.add('ip');
  keys.remove('ip');
  assert.equal(keys.has('ip'), true);
  keys.remove('ip');
  assert.equal(keys.has('ip'), false);
  assert.deepEqual([...keys.keys()], []);
});
