import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { addressKeyFrom, addressKeyOf, familyOfKey, keyBytes, keyText } from './address-key.ts';
import { formatIP, type IP } from './ip.ts';

const addresses = fc.oneof(
  fc.uint8Array({ minLength: 4, maxLength: 4 }).map((bytes): IP => ({ family: 'IPv4', bytes })),
  fc.uint8Array({ minLength: 16, maxLength: 16 }).map((bytes): IP => ({ family: 'IPv6', bytes })),
);

test('an address key stands for one address, and gives back its bytes and text', () => {
  fc.assert(
    fc.property(addresses, (ip) => {
      const key = addressKeyOf(ip);
      assert.equal(familyOfKey(key), ip.family);
      assert.deepEqual(Buffer.from(keyBytes(key)), Buffer.from(ip.bytes));
      assert.equal(keyText(key), formatIP(ip));
    }),
  );
});

test('a text that is no address has no key', () => {
  assert.equal(addressKeyFrom('10.96.0.300'), undefined);
  assert.equal(addressKeyFrom('10.0.0.1'), 0x0a000001);
});
