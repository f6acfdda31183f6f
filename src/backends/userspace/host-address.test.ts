import assert from 'node:assert/strict';
import type { NetworkInterfaceInfo } from 'node:os';
import { test } from 'node:test';
import { checkBindAddress, type HostAddressOptions, hostAddress } from './host-address.ts';

const address = (text: string): NetworkInterfaceInfo => {
  const isV4 = !text.includes(':');
  const common = { address: text, netmask: '', mac: '', internal: false, cidr: null };
  return isV4 ? { ...common, family: 'IPv4' } : { ...common, family: 'IPv6', scopeid: 0 };
};

const routes: Readonly<Record<string, string>> = {
  '/proc/net/route':
    'Iface Destination Gateway Flags RefCnt Use Metric Mask MTU Window IRTT\n' +
    'eth0 0002C0C0 00000000 0001 0 0 0 00FFFFFF 0 0 0\neth1 00000000 010200C0 0003 0 0 0 00000000 0 0 0\n',
  '/proc/net/ipv6_route': `${'0'.repeat(32)} 00 ${'0'.repeat(32)} 00 ${'fe80'.padEnd(32, '0')} 00000400 00000001 00000000 00000003 eth1\n`,
};

const options: HostAddressOptions = {
  family: 'IPv4',
  bindAddress: '0.0.0.0',
  nodeIP: '127.0.0.1',
  interfaces: {
    lo: [address('127.0.0.1'), address('::1')],
    eth0: [address('169.254.1.1'), address('192.0.2.10'), address('2001:db8::10')],
    eth1: [address('192.0.2.11'), address('fe80::1'), address('2001:db8::11')],
  },
  files: { read: (path) => routes[path] ?? assert.fail(path) },
};

test('proxy sockets listen on bindAddress when it is a particular address', () => {
  assert.equal(hostAddress({ ...options, bindAddress: '192.0.2.99' }), '192.0.2.99');
  assert.equal(hostAddress({ ...options, bindAddress: '2001:db8::99' }), '192.0.2.11');
});

test('proxy sockets listen on the address of the node when an interface has it', () => {
  assert.equal(hostAddress({ ...options, nodeIP: '192.0.2.10' }), '192.0.2.10');
  assert.equal(hostAddress({ ...options, nodeIP: '203.0.113.1' }), '192.0.2.11');
});

test('proxy sockets otherwise listen on a global address, first of an interface with a default route', () => {
  assert.equal(hostAddress(options), '192.0.2.11');
  assert.equal(hostAddress({ ...options, family: 'IPv6' }), '2001:db8::11');
  const files = { read: () => assert.fail('no such file') };
  assert.equal(hostAddress({ ...options, files }), '192.0.2.10');
  assert.equal(hostAddress({ ...options, interfaces: {} }), '127.0.0.1');
  assert.equal(hostAddress({ ...options, family: 'IPv6', interfaces: {} }), '::1');
});

test('localhost is refused, the rest of loopback is not', () => {
  for (const text of ['127.0.0.1', '::1']) assert.throws(() => checkBindAddress(text), /cannot be used/);
  for (const text of ['127.0.0.2', '0.0.0.0', '::', '']) checkBindAddress(text);
});
