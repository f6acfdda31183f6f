import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { RulePacket } from '../../kernel/iptables/rule-match.ts';
import { type IP, parseIP } from '../../model/ip.ts';
import { SetLookup } from './set-lookup.ts';

const held: Readonly<Record<string, readonly string[]>> = {
  'KUBE-6-IPVS-IPS': ['fd00:96::1'],
  'KUBE-6-CLUSTER-IP': ['fd00:96::1,tcp:80', '2001:db8::9,tcp:80'],
  'KUBE-6-LOOP-BACK': ['fd00:96::1,tcp:80,2001:db8::9'],
  'KUBE-6-LOAD-BALANCER-SOURCE-CID': ['fd00:96::1,tcp:80,2001:db8:1::/48', 'fd00:96::1,tcp:80,2001:db8::/64'],
  'KUBE-6-NODE-PORT-TCP': ['80'],
};

const packet: RulePacket = {
  family: 'IPv6',
  protocol: 'TCP',
  source: ip('2001:db8::9'),
  destination: ip('fd00:96::1'),
  port: 80,
  interface: 'eth0',
  mark: 0,
  isRewritten: false,
};

test('an entry of every kind of set is found by what the rule looks at', async () => {
  const sets = await lookup();
  const find = (name: string, dimensions: string) => sets.find(name, dimensions.split(','), packet);
  assert.equal(find('KUBE-6-IPVS-IPS', 'dst'), 'fd00:96::1');
  assert.equal(find('KUBE-6-IPVS-IPS', 'src'), '');
  assert.equal(find('KUBE-6-CLUSTER-IP', 'dst,dst'), 'fd00:96::1,tcp:80');
  assert.equal(find('KUBE-6-CLUSTER-IP', 'src,dst'), '2001:db8::9,tcp:80');
  assert.equal(find('KUBE-6-LOOP-BACK', 'dst,dst,src'), 'fd00:96::1,tcp:80,2001:db8::9');
  assert.equal(find('KUBE-6-LOAD-BALANCER-SOURCE-CID', 'dst,dst,src'), 'fd00:96::1,tcp:80,2001:db8::/64');
  assert.equal(find('KUBE-6-NODE-PORT-TCP', 'dst'), '80');
  const other = { ...packet, port: 81 };
  for (const name of Object.keys(held).filter((set) => set !== 'KUBE-6-IPVS-IPS')) {
    const dimensions = name.includes('NODE')
      ? ['dst']
      : name.includes('CLUSTER')
        ? ['dst', 'dst']
        : ['dst', 'dst', 'src'];
    assert.equal(sets.find(name, dimensions, other), '', name);
  }
});

test('a lookup by unknown fields has no answer', async () => {
  const sets = await lookup();
  assert.equal(sets.find('OTHER', ['dst'], packet), undefined);
  assert.equal(sets.find('KUBE-6-LOAD-BALANCER', ['dst', 'dst'], packet), undefined);
  assert.equal(sets.find('KUBE-6-CLUSTER-IP', ['dst'], packet), undefined);
  assert.equal(sets.find('KUBE-6-CLUSTER-IP', ['dst', 'src'], packet), undefined);
  assert.equal(sets.find('KUBE-6-NODE-PORT-TCP', ['src'], packet), undefined);
});

function lookup(): Promise<SetLookup> {
  const list = async (name: string) => {
    const entries = held[name];
    return entries && { entries };
  };
  return SetLookup.read({ list }, 'IPv6');
}

function ip(text: string): IP {
  const parsed = parseIP(text);
  assert.ok(parsed);
  return parsed;
}
