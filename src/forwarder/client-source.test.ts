import assert from 'node:assert/strict';
import { test } from 'node:test';
import { canKeepSource } from './client-source.ts';
import { encodeAddress } from './socket-address.ts';

function keeps(client: string, endpoint: string): boolean {
  return canKeepSource(
    encodeAddress({ ip: client, port: 40_000 }),
    encodeAddress({ ip: endpoint, port: 80 }),
  );
}

test('an endpoint can see the address of a client that is another host', () => {
  assert.equal(keeps('10.244.1.2', '10.244.1.3'), true);
  assert.equal(keeps('fd00::2', 'fd00::3'), true);
});

test('an endpoint that is the client itself sees the node', () => {
  assert.equal(keeps('10.244.1.2', '10.244.1.2'), false);
  assert.equal(keeps('fd00::2', 'fd00::2'), false);
});

test('a link-local address, and one of the other family, is not kept', () => {
  assert.equal(keeps('fe80::2', 'fd00::3'), false);
  assert.equal(keeps('10.244.1.2', 'fd00::3'), false);
});
