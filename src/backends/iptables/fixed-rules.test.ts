import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { settingsOf } from '../../../test/iptables/harness.ts';
import { nodePortAddresses } from '../../model/node-port-addresses.ts';
import { filterChains, filterHead, filterTail, natTail, unservedLoopback } from './fixed-rules.ts';

const none = { invalidDropped: false, localhostAccepted: false };
const both = { invalidDropped: true, localhostAccepted: true };
const last =
  '-A KUBE-SERVICES -m comment --comment "kubernetes service nodeports; NOTE: this must be the last rule in this chain"';

test('the chain shared with the kubelet is mentioned only when it gets a rule', () => {
  assert.ok(filterChains(settingsOf('IPv4')).includes('KUBE-FIREWALL'));
  assert.equal(filterHead(settingsOf('IPv4')).length, 1);
  for (const settings of [settingsOf('IPv4', { localhostNodePorts: false }), settingsOf('IPv6')]) {
    assert.ok(!filterChains(settings).includes('KUBE-FIREWALL'));
    assert.deepEqual(filterHead(settings), []);
  }
});

describe('packets that conntrack finds invalid', () => {
  const invalid = (settings = settingsOf('IPv4'), counters = none) =>
    filterTail(settings, counters).filter((rule) => rule.includes('INVALID'));

  test('are dropped', () => {
    assert.deepEqual(invalid(), ['-A KUBE-FORWARD -m conntrack --ctstate INVALID -j DROP']);
  });
  test('are counted where there is a counter, in both families', () => {
    const rule =
      '-A KUBE-FORWARD -m conntrack --ctstate INVALID -m nfacct --nfacct-name ct_state_invalid_dropped_pkts -j DROP';
    assert.deepEqual(invalid(settingsOf('IPv4'), both), [rule]);
    assert.deepEqual(invalid(settingsOf('IPv6'), both), [rule]);
  });
  test('pass when conntrack is liberal', () => {
    assert.deepEqual(invalid(settingsOf('IPv4', { conntrackLiberal: true }), both), []);
  });
});

describe('node ports', () => {
  const on = (...entries: string[]) => ({ nodePortAddresses: nodePortAddresses('IPv4', entries) });
  const addresses = ['127.0.0.1', '10.0.0.9', '10.0.0.10', '192.168.1.1', '10.0.0.9', '::1', 'fd00::1'];
  const cases = [
    { settings: settingsOf('IPv4'), rules: [' -m addrtype --dst-type LOCAL'] },
    {
      settings: settingsOf('IPv4', { localhostNodePorts: false }),
      rules: [' -m addrtype --dst-type LOCAL ! -d 127.0.0.0/8'],
    },
    { settings: settingsOf('IPv6'), rules: [' -m addrtype --dst-type LOCAL ! -d ::1/128'] },
    { settings: settingsOf('IPv4', on('fd00::/64')), rules: [' -m addrtype --dst-type LOCAL'] },
    {
      settings: settingsOf('IPv4', { ...on('10.0.0.0/8'), localhostNodePorts: false }),
      rules: [' -d 10.0.0.10', ' -d 10.0.0.9'],
    },
    { settings: settingsOf('IPv4', on('127.0.0.0/8')), rules: [' -d 127.0.0.1'] },
    { settings: settingsOf('IPv4', { ...on('127.0.0.0/8'), localhostNodePorts: false }), rules: [] },
    { settings: settingsOf('IPv4', on('172.16.0.0/12')), rules: [] },
    {
      settings: settingsOf('IPv6', {
        nodePortAddresses: nodePortAddresses('IPv6', ['::1/128', 'fd00::/64']),
      }),
      rules: [' -d fd00::1'],
    },
  ];
  for (const { settings, rules } of cases) {
    const { family, nodePortAddresses: set, localhostNodePorts } = settings;
    const where = set.cidrs.map(({ bytes, prefix }) => `${bytes.join('.')}/${prefix}`).join(' ');
    test(`${family} on ${where}, loopback ${localhostNodePorts}`, () => {
      const expected = rules.map((match) => `${last}${match} -j KUBE-NODEPORTS`);
      assert.deepEqual(natTail(settings, addresses), expected);
    });
  }

  test('loopback addresses that are asked for and cannot be had are known', () => {
    const settings = settingsOf('IPv4', { ...on('127.0.0.0/8'), localhostNodePorts: false });
    assert.deepEqual(unservedLoopback(settings, addresses), ['127.0.0.1']);
    assert.deepEqual(unservedLoopback(settingsOf('IPv4', on('127.0.0.0/8')), addresses), []);
    assert.deepEqual(unservedLoopback(settingsOf('IPv6'), addresses), []);
  });
});
