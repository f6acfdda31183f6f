import assert from 'node:assert/strict';
import { test } from 'node:test';
import { peerCheck } from './peers.ts';

test('only loopback peers may inspect by default', () => {
  const admits = peerCheck([]);
  for (const peer of ['127.0.0.1', '127.9.9.9', '::1', '::ffff:127.0.0.1']) assert.ok(admits(peer), peer);
  for (const peer of ['192.0.2.1', '::2', 'fe80::1%eth0', '::ffff:192.0.2.1', '', undefined]) {
    assert.ok(!admits(peer), String(peer));
  }
});

test('peers in the given CIDRs and addresses may inspect, too', () => {
  const admits = peerCheck(['192.0.2.0/24', '2001:db8::1', 'fe80::/10']);
  const admitted = ['127.0.0.1', '192.0.2.99', '::ffff:192.0.2.99', '2001:db8::1', 'fe80::7%eth0'];
  for (const peer of admitted) assert.ok(admits(peer), peer);
  for (const peer of ['192.0.3.1', '2001:db8::2']) assert.ok(!admits(peer), peer);
});

test('an entry that is neither a CIDR nor an address is an error that quotes it', () => {
  assert.throws(() => peerCheck(['10.0.0.0/33']), /"10\.0\.0\.0\/33" is neither a CIDR nor an IP address/);
});
