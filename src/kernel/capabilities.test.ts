import assert from 'node:assert/strict';
import { test } from 'node:test';
import { hasNetAdmin } from './capabilities.ts';

const withMask = (mask: string) => ({
  read: () => `Name:\tnode\nCapPrm:\t0\nCapEff:\t${mask}\nCapBnd:\t0\n`,
});

test('CAP_NET_ADMIN is bit 12 of the effective capabilities', () => {
  assert.equal(hasNetAdmin(withMask('000001ffffffffff')), true);
  assert.equal(hasNetAdmin(withMask('0000000000001000')), true);
  assert.equal(hasNetAdmin(withMask('000001ffffffefff')), false);
  assert.equal(hasNetAdmin(withMask('0000000000000000')), false);
});

test('unreadable capabilities count as CAP_NET_ADMIN', () => {
  assert.equal(hasNetAdmin({ read: () => 'Name:\tnode\n' }), true);
  const read = () => {
    throw new Error('ENOENT');
  };
  assert.equal(hasNetAdmin({ read }), true);
});
