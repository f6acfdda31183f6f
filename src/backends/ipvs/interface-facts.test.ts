import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Family } from '../../model/ip.ts';
import { nodePortAddresses } from '../../model/node-port-addresses.ts';
import { interfaceFacts, sameFacts } from './interface-facts.ts';

const listed = [
  '127.0.0.1',
  '10.0.0.1',
  '169.254.1.1',
  '::ffff:192.0.2.9',
  '::1',
  'fe80::1',
  'febf::1',
  '2001:DB8::5',
];

function facts(family: Family, cidrs: readonly string[] = [], addresses: readonly string[] = listed) {
  const { addresses: all, nodePortIPs } = interfaceFacts(
    { family, nodePortAddresses: nodePortAddresses(family, cidrs) },
    addresses,
  );
  return { all: [...all], nodePortIPs };
}

test('loopback and IPv6 link-local addresses do not count, IPv4 link-local ones do', () => {
  const ipv4 = ['10.0.0.1', '169.254.1.1', '192.0.2.9'];
  assert.deepEqual(facts('IPv4'), { all: ipv4, nodePortIPs: ipv4 });
  assert.deepEqual(facts('IPv6'), { all: ['2001:db8::5'], nodePortIPs: ['2001:db8::5'] });
});

test('configured ranges select among them', () => {
  assert.deepEqual(facts('IPv4', ['10.0.0.0/8']).nodePortIPs, ['10.0.0.1']);
  assert.deepEqual(facts('IPv4', ['10.0.0.0/8', '0.0.0.0/0']).nodePortIPs.length, 3);
  assert.deepEqual(facts('IPv4', ['127.0.0.0/8']).nodePortIPs, []);
  assert.deepEqual(facts('IPv6', ['10.0.0.0/8']).nodePortIPs, ['2001:db8::5'], 'no range of this family');
  assert.deepEqual(facts('IPv6', ['fe80::/10']).nodePortIPs, [], 'upstream would serve link-local addresses');
});

test('the order in which addresses are listed makes no difference', () => {
  const make = (addresses: readonly string[]) =>
    interfaceFacts({ family: 'IPv4', nodePortAddresses: nodePortAddresses('IPv4', []) }, addresses);
  assert.ok(sameFacts(make(listed), make(listed.toReversed())));
  assert.ok(!sameFacts(make(listed), make(['10.0.0.1'])));
});
