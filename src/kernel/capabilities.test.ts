import assert from 'node:assert/strict';
import { test } from 'node:test';
import { hasNetAdmin } from './capabilities.ts';

const withMask = (mask: string) => ({
  read: () => `Name:\tnode\nCapPrm:\t0\nCapEff:\t${mask}\nCapBnd:\t0\n`,
});

test('the privilege to change the network is bit 12 of the effective capabilities', () => {
  assert.equal(hasNetAdmin(withMask('000001ffffffffff')), true);
  assert.equal(hasNetAdmin(withMask('0000000000001000')), true);
  assert.equal(hasNetAdmin(withMask('000001ffffffefff')), false);
  assert.equal(hasNetAdmin(withMask('0000000000000000')), false);
});

test('who cannot be told apart is not kept from trying', () => {
  assert.equal(hasNetAdmin({ read: () => 'Name:\tnode\n' }), true);
  const read = () => {
    throw new Error('ENOENT');
  };
  assert.equal(hasNetAdmin({ read }), true);
});
