import assert from 'node:assert/strict';
import { test } from 'node:test';
import { formatCIDR } from './ip.ts';
import { expandNodePortAddresses, nodePortAddresses, nodePortIPs } from './node-port-addresses.ts';

const nodeIPs = { IPv4: '192.168.1.1', IPv6: 'fd00::1' };

for (const [entries, ips, expected] of [
  [['primary'], nodeIPs, ['192.168.1.1/32', 'fd00::1/128']],
  [['primary'], { IPv4: '192.168.1.1', IPv6: '::1' }, ['192.168.1.1/32']],
  [['primary'], { IPv4: '127.0.0.1', IPv6: '::1' }, []],
  [['localhost'], { IPv4: '127.0.0.1', IPv6: '::1' }, ['127.0.0.0/8', '::1/128']],
  [['all'], nodeIPs, ['0.0.0.0/0', '::/0']],
  [['primary', 'localhost'], nodeIPs, ['192.168.1.1/32', 'fd00::1/128', '127.0.0.0/8', '::1/128']],
  [
    ['10.0.0.0/8', 'primary', '10.0.0.0/8', '192.168.1.1/32'],
    { IPv4: '192.168.1.1', IPv6: '::1' },
    ['10.0.0.0/8', '192.168.1.1/32', '10.0.0.0/8', '192.168.1.1/32'],
  ],
  [[], nodeIPs, []],
] as const) {
  test(`expansion of [${entries}] on ${ips.IPv4} ${ips.IPv6}`, () => {
    assert.deepEqual(expandNodePortAddresses(entries, ips), expected);
  });
}

for (const [family, entries, cidrs, matchAll, containsIPv4Loopback, explicitLoopback] of [
  ['IPv4', [], ['0.0.0.0/0'], true, true, false],
  ['IPv6', [], ['::/0'], true, false, false],
  ['IPv6', ['10.0.0.0/8'], ['::/0'], true, false, false],
  ['IPv4', ['fd00::/64'], ['0.0.0.0/0'], true, true, false],
  ['IPv4', ['10.0.0.0/8', 'fd00::/64'], ['10.0.0.0/8'], false, false, false],
  ['IPv6', ['10.0.0.0/8', 'fd00::/64'], ['fd00::/64'], false, false, false],
  ['IPv4', ['10.0.0.0/8', '0.0.0.0/0', '127.0.0.0/8'], ['0.0.0.0/0'], true, true, false],
  ['IPv4', ['127.0.0.0/8', '::1/128'], ['127.0.0.0/8'], false, true, true],
  ['IPv6', ['127.0.0.0/8', '::1/128'], ['::1/128'], false, false, true],
  ['IPv4', ['127.0.0.5/32', '10.0.0.0/8'], ['127.0.0.5/32', '10.0.0.0/8'], false, true, true],
  ['IPv4', ['126.0.0.0/7'], ['126.0.0.0/7'], false, true, false],
  ['IPv6', ['::/64'], ['::/64'], false, false, false],
  ['IPv4', ['10.1.2.3/8'], ['10.0.0.0/8'], false, false, false],
] as const) {
  test(`${family} set of [${entries}]`, () => {
    const set = nodePortAddresses(family, entries);
    assert.deepEqual(set.cidrs.map(formatCIDR), cidrs);
    assert.deepEqual(
      [set.family, set.matchAll, set.containsIPv4Loopback, set.explicitLoopback],
      [family, matchAll, containsIPv4Loopback, explicitLoopback],
    );
  });
}

test('node port addresses are the local ones of the family in a CIDR, without duplicates', () => {
  const local = [
    '127.0.0.1',
    '::1',
    '10.0.0.2',
    '10.0.0.2',
    'fe80::1',
    'fe80::1%eth0',
    'fd00:0::7',
    '192.168.1.1',
  ];
  const ips = (family: 'IPv4' | 'IPv6', ...entries: string[]) =>
    nodePortIPs(nodePortAddresses(family, entries), local);
  assert.deepEqual(ips('IPv4', '10.0.0.0/8', '10.0.0.0/16'), ['10.0.0.2']);
  assert.deepEqual(ips('IPv4', '192.168.0.0/16', '127.0.0.0/8'), ['127.0.0.1', '192.168.1.1']);
  assert.deepEqual(ips('IPv6', 'fd00::/8'), ['fd00::7']);
  assert.deepEqual(ips('IPv4', '172.16.0.0/12'), []);
  assert.deepEqual(ips('IPv4'), ['127.0.0.1', '10.0.0.2', '192.168.1.1']);
});
