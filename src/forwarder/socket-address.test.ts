import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { canonicalIP } from '../model/ip.ts';
import { decodeAddress, encodeAddress, maxAddressBytes, trimAddress } from './socket-address.ts';

test('decodeAddress reverses encodeAddress for both families', () => {
  fc.assert(
    fc.property(fc.oneof(fc.ipV4(), fc.ipV6()), fc.nat(65_535), (text, port) => {
      const ip = canonicalIP(text) ?? '';
      const bytes = encodeAddress({ ip, port });
      assert.deepEqual(decodeAddress(bytes), { ip, port });
      const wide = new Uint8Array(maxAddressBytes);
      wide.set(bytes);
      assert.deepEqual(trimAddress(wide), bytes);
    }),
  );
});

test('encodeAddress throws an error that quotes an invalid address', () => {
  assert.throws(() => encodeAddress({ ip: 'localhost', port: 80 }), /"localhost" is not an IP address/);
});
