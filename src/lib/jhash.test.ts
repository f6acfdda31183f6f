import assert from 'node:assert/strict';
import { test } from 'node:test';
import { jhash, scaled } from './jhash.ts';

const bytes = (text: string) => new TextEncoder().encode(text);

test('hashes are those that the author of lookup3 published', () => {
  assert.equal(jhash(bytes(''), 0), 0xdeadbeef);
  assert.equal(jhash(bytes(''), 0xdeadbeef), 0xbd5b7dde);
  assert.equal(jhash(bytes('Four score and seven years ago'), 0), 0x17770551);
  assert.equal(jhash(bytes('Four score and seven years ago'), 1), 0xcd628161);
});

test('a hash is scaled to a number below the count', () => {
  assert.equal(scaled(0, 1021), 0);
  assert.equal(scaled(0x8000_0000, 1021), 510);
  assert.equal(scaled(0xffff_ffff, 1021), 1020);
});
