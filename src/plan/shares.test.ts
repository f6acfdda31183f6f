import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sharesOf } from './shares.ts';

const three = ['10.0.0.1:80', '10.0.0.2:80', '10.0.0.3:80'];

test('without a hash, endpoints have equal shares', () => {
  assert.deepEqual(sharesOf(three, 'default', '10.9.9.9'), [1 / 3, 1 / 3, 1 / 3]);
  assert.deepEqual(sharesOf([], 'default'), []);
});

test('with a hash, the share of an endpoint is that of its slots, for a client with any port and for all clients', () => {
  for (const shares of [
    sharesOf(three, 'hash', '10.9.9.9'),
    sharesOf(three, 'hash'),
    sharesOf(three, 'hash-client'),
  ]) {
    assert.deepEqual(
      shares.map((share) => share * 509).toSorted((a, b) => a - b),
      [169, 170, 170],
    );
  }
});

test('with a hash of the address, one endpoint has all connections of a client', () => {
  assert.deepEqual(sharesOf(three, 'hash-client', '10.9.9.9').toSorted(), [0, 0, 1]);
});
