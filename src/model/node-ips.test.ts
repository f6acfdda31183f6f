import assert from 'node:assert/strict';
import { test } from 'node:test';
import { detectNodeAddresses, nodeIPs } from './node-ips.ts';
import type { NodeObject } from './objects.ts';

const node = (...addresses: [type: string, address: string][]): NodeObject => ({
  name: 'n1',
  resourceVersion: '1',
  labels: {},
  addresses: addresses.map(([type, address]) => ({ type, address })),
  podCIDRs: [],
  taintKeys: [],
  deleting: false,
});

for (const [name, object, expected] of [
  ['no address', node(), []],
  ['one', node(['InternalIP', '192.168.1.1']), ['192.168.1.1']],
  [
    'two of one family: the first',
    node(['InternalIP', '10.0.0.1'], ['InternalIP', '10.0.0.2']),
    ['10.0.0.1'],
  ],
  ['internal before external', node(['ExternalIP', '1.2.3.4'], ['InternalIP', '10.0.0.1']), ['10.0.0.1']],
  ['external alone', node(['ExternalIP', '1.2.3.4']), ['1.2.3.4']],
  [
    'the other family may be external',
    node(['ExternalIP', 'fd00::9'], ['InternalIP', '10.0.0.1'], ['InternalIP', '10.0.0.2']),
    ['10.0.0.1', 'fd00::9'],
  ],
  [
    'an internal address of the other family beats an external one',
    node(['ExternalIP', 'fd00::9'], ['InternalIP', 'fd00::1'], ['InternalIP', '10.0.0.1']),
    ['fd00::1', '10.0.0.1'],
  ],
  ['unparsable ones are skipped', node(['InternalIP', 'here'], ['InternalIP', '10.0.0.1']), ['10.0.0.1']],
  ['other types are skipped', node(['Hostname', '10.9.9.9'], ['InternalIP', '10.0.0.1']), ['10.0.0.1']],
  ['canonical form', node(['InternalIP', 'FD00:0::1'], ['InternalIP', '010.0.0.1']), ['fd00::1', '10.0.0.1']],
] as const) {
  test(`node IPs: ${name}`, () => assert.deepEqual(nodeIPs(object), expected));
}

for (const [fromNode, bindAddress, primary, IPv4, IPv6] of [
  [[], '0.0.0.0', 'IPv4', '127.0.0.1', '::1'],
  [[], '::', 'IPv4', '127.0.0.1', '::1'],
  [[], 'fd00:4321::2', 'IPv6', '127.0.0.1', 'fd00:4321::2'],
  [['192.168.1.1'], '::', 'IPv4', '192.168.1.1', '::1'],
  [['fd00::1'], '0.0.0.0', 'IPv6', '127.0.0.1', 'fd00::1'],
  [['2001:db8::2', '90.90.90.90'], '0.0.0.0', 'IPv6', '90.90.90.90', '2001:db8::2'],
  [['2001:db8::2', '90.90.90.90'], '80.80.80.80', 'IPv4', '80.80.80.80', '2001:db8::2'],
  [['90.90.90.90', '2001:db8::2'], '2001:db8:0::9', 'IPv6', '90.90.90.90', '2001:db8::9'],
] as const) {
  test(`node addresses: [${fromNode}] with bindAddress ${bindAddress}`, () => {
    const found = detectNodeAddresses(fromNode, bindAddress);
    assert.deepEqual({ primary: found.primary, ips: found.ips }, { primary, ips: { IPv4, IPv6 } });
    assert.equal(
      found.primaryIsLoopback,
      { IPv4, IPv6 }[primary] === { IPv4: '127.0.0.1', IPv6: '::1' }[primary],
    );
  });
}

test('a loopback bindAddress overrides the Node object and sets primaryIsLoopback', () => {
  const found = detectNodeAddresses(['10.0.0.1'], '127.0.0.1');
  assert.equal(found.ips.IPv4, '127.0.0.1');
  assert.equal(found.primaryIsLoopback, true);
});
