import assert from 'node:assert/strict';
import { test } from 'node:test';
import { SharedKeys } from './shared-keys.ts';

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
