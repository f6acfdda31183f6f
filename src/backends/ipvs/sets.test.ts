import assert from 'node:assert/strict';
import { test } from 'node:test';
import { canonicalSetEntry, kernelName, setDefinition, setNames } from './sets.ts';

test('IPv6 names are cut where the kernel would refuse them', () => {
  const names = setNames.map((set) => kernelName(set, 'IPv6'));
  assert.equal(new Set(names).size, 17);
  assert.deepEqual(
    names.filter((name) => name.length === 31),
    ['KUBE-6-LOAD-BALANCER-SOURCE-CID', 'KUBE-6-NODE-PORT-LOCAL-SCTP-HAS'],
  );
  assert.ok(names.every((name) => name.startsWith('KUBE-6-') && name.length <= 31));
  assert.deepEqual(
    setNames.map((set) => kernelName(set, 'IPv4')),
    setNames,
  );
});

test('sets are defined as upstream defines them', () => {
  assert.deepEqual(setDefinition('KUBE-LOOP-BACK', 'IPv6'), {
    name: 'KUBE-6-LOOP-BACK',
    type: 'hash:ip,port,ip',
    family: 'IPv6',
    hashSize: 1024,
    maxElements: 65536,
  });
  assert.deepEqual(setDefinition('KUBE-NODE-PORT-TCP', 'IPv4'), {
    name: 'KUBE-NODE-PORT-TCP',
    type: 'bitmap:port',
    from: 0,
    to: 65535,
  });
});

test('a network of one address has one spelling', () => {
  const spelled = (entry: string) => canonicalSetEntry('KUBE-LOAD-BALANCER-SOURCE-CIDR', entry);
  assert.equal(spelled('203.0.113.1,tcp:80,198.51.100.7/32'), '203.0.113.1,tcp:80,198.51.100.7');
  assert.equal(spelled('2001:DB8::1,sctp:80,2001:db8::7/128'), '2001:db8::1,sctp:80,2001:db8::7');
  assert.equal(spelled('203.0.113.1,tcp:80,198.51.100.0/24'), '203.0.113.1,tcp:80,198.51.100.0/24');
});
