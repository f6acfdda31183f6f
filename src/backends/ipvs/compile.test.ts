import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ServicePortParts } from '../../../test/cluster/objects.ts';
import { planOf } from '../../../test/cluster/plans.ts';
import { settings } from '../../../test/ipvs/harness.ts';
import { nodePortAddresses } from '../../model/node-port-addresses.ts';
import type { ServicePlan } from '../../plan/service-plan.ts';
import { compilePlan, type Fragment } from './compile.ts';
import { interfaceFacts } from './interface-facts.ts';
import type { IpvsSettings } from './settings.ts';

const nodeAddresses = ['192.0.2.5', '192.0.2.6', '127.0.0.1'];

function compile(
  plan: ServicePlan,
  overrides: Partial<IpvsSettings> = {},
  addresses = nodeAddresses,
): Fragment {
  const all = { ...settings, ...overrides };
  return compilePlan(plan, all, interfaceFacts(all, addresses));
}

/** `server -> endpoints`, one line for each virtual server. */
function servers(fragment: Fragment): string[] {
  return [...fragment.servers].map(([key, { endpoints }]) =>
    [key, '->', ...endpoints.map(({ id }) => id)].join(' '),
  );
}

/** `set entry`, without the hairpins that all local endpoints have. */
function entries(fragment: Fragment): string[] {
  return fragment.entries
    .filter(({ set }) => set !== 'KUBE-LOOP-BACK')
    .map(({ set, entry }) => `${set} ${entry}`);
}

const here = { ip: '10.244.0.1', local: true };
const there = { ip: '10.244.1.1' };
const web = (parts: Partial<ServicePortParts> = {}): ServicePortParts => ({
  clusterIP: '10.96.0.1',
  ...parts,
});

test('a cluster IP is served, bound, and in its set', () => {
  const fragment = compile(planOf(web(), [here, there]));
  assert.deepEqual(servers(fragment), ['10.96.0.1:80/TCP -> 10.244.0.1:8080 10.244.1.1:8080']);
  assert.deepEqual(entries(fragment), ['KUBE-CLUSTER-IP 10.96.0.1,tcp:80']);
  assert.deepEqual(fragment.addresses, ['10.96.0.1']);
  assert.deepEqual(fragment.outFilter, []);
});

test('a service without endpoints has a virtual server with nothing behind it', () => {
  assert.deepEqual(servers(compile(planOf(web()))), ['10.96.0.1:80/TCP ->']);
});

test('every endpoint of this node may hairpin, ready or not; others may not', () => {
  const plan = planOf(web({ protocol: 'UDP' }), [
    here,
    there,
    { ip: '10.244.0.2', local: true, state: 'gone' },
  ]);
  assert.deepEqual(
    compile(plan).entries.flatMap(({ set, entry }) => (set === 'KUBE-LOOP-BACK' ? [entry] : [])),
    ['10.244.0.1,udp:8080,10.244.0.1', '10.244.0.2,udp:8080,10.244.0.2'],
  );
});

test('endpoints that only terminate serve when there is nothing better', () => {
  const fragment = compile(planOf(web(), [{ ...there, state: 'draining' }]));
  assert.deepEqual(servers(fragment), ['10.96.0.1:80/TCP -> 10.244.1.1:8080']);
});

test('external IPs go by external policy, and are bound unless the node has them', () => {
  const parts = web({ externalIPs: ['203.0.113.1', '192.0.2.6'], externalPolicyLocal: true });
  const fragment = compile(planOf(parts, [here, there]));
  assert.deepEqual(servers(fragment), [
    '10.96.0.1:80/TCP -> 10.244.0.1:8080 10.244.1.1:8080',
    '203.0.113.1:80/TCP -> 10.244.0.1:8080',
    '192.0.2.6:80/TCP -> 10.244.0.1:8080',
  ]);
  assert.deepEqual(entries(fragment), [
    'KUBE-CLUSTER-IP 10.96.0.1,tcp:80',
    'KUBE-EXTERNAL-IP-LOCAL 203.0.113.1,tcp:80',
    'KUBE-EXTERNAL-IP-LOCAL 192.0.2.6,tcp:80',
  ]);
  assert.deepEqual(fragment.addresses, ['10.96.0.1', '203.0.113.1']);
});

test('a cluster IP is bound even when the node has it', () => {
  assert.deepEqual(compile(planOf(web({ clusterIP: '192.0.2.6' }))).addresses, ['192.0.2.6']);
});

test('external policy Cluster has a set of its own', () => {
  const fragment = compile(planOf(web({ externalIPs: ['203.0.113.1'] })));
  assert.ok(entries(fragment).includes('KUBE-EXTERNAL-IP 203.0.113.1,tcp:80'));
});

test('external policy Local without an endpoint here falls back to all of them', () => {
  const parts = web({ loadBalancerVIPs: ['203.0.113.1'], nodePort: 30080, externalPolicyLocal: true });
  const fragment = compile(planOf(parts, [there]), {}, ['192.0.2.5']);
  assert.deepEqual(servers(fragment).slice(1), [
    '203.0.113.1:80/TCP -> 10.244.1.1:8080',
    '192.0.2.5:30080/TCP -> 10.244.1.1:8080',
  ]);
  assert.ok(entries(fragment).includes('KUBE-LOAD-BALANCER-LOCAL 203.0.113.1,tcp:80'), 'not masqueraded');
});

test('internal policy Local without an endpoint here serves nothing, external address or not', () => {
  const closed = compile(planOf(web({ internalPolicyLocal: true }), [there]));
  assert.deepEqual(servers(closed), ['10.96.0.1:80/TCP ->']);
  const parts = web({ internalPolicyLocal: true, loadBalancerVIPs: ['203.0.113.1'] });
  assert.deepEqual(servers(compile(planOf(parts, [there]))), [
    '10.96.0.1:80/TCP ->',
    '203.0.113.1:80/TCP -> 10.244.1.1:8080',
  ]);
});

test('node ports: one entry and a virtual server for each address; SCTP has an entry for each, too', () => {
  const tcp = compile(planOf(web({ nodePort: 30080 })));
  assert.deepEqual(servers(tcp).slice(1), ['192.0.2.5:30080/TCP ->', '192.0.2.6:30080/TCP ->']);
  assert.deepEqual([...new Set(entries(tcp).slice(1))], ['KUBE-NODE-PORT-TCP 30080']);
  assert.deepEqual(tcp.addresses, ['10.96.0.1'], 'node addresses are not bound');
  const sctp = compile(planOf(web({ nodePort: 30080, protocol: 'SCTP', externalPolicyLocal: true })));
  assert.deepEqual(servers(sctp).slice(1), ['192.0.2.5:30080/SCTP ->', '192.0.2.6:30080/SCTP ->']);
  assert.deepEqual(entries(sctp).slice(1), [
    'KUBE-NODE-PORT-SCTP-HASH 192.0.2.5,sctp:30080',
    'KUBE-NODE-PORT-LOCAL-SCTP-HASH 192.0.2.5,sctp:30080',
    'KUBE-NODE-PORT-SCTP-HASH 192.0.2.6,sctp:30080',
    'KUBE-NODE-PORT-LOCAL-SCTP-HASH 192.0.2.6,sctp:30080',
  ]);
  const udp = compile(planOf(web({ nodePort: 30080, protocol: 'UDP', externalPolicyLocal: true })));
  assert.deepEqual(
    [...new Set(entries(udp).slice(1))],
    ['KUBE-NODE-PORT-UDP 30080', 'KUBE-NODE-PORT-LOCAL-UDP 30080'],
  );
});

test('without an address for node ports there are none; the health check port is open all the same', () => {
  const parts = web({
    nodePort: 30080,
    loadBalancerVIPs: ['203.0.113.1'],
    externalPolicyLocal: true,
    healthCheckNodePort: 32000,
  });
  const loopbackOnly = { nodePortAddresses: nodePortAddresses('IPv4', ['127.0.0.0/8']) };
  const fragment = compile(planOf(parts), loopbackOnly);
  assert.deepEqual(servers(fragment), ['10.96.0.1:80/TCP ->', '203.0.113.1:80/TCP ->']);
  assert.deepEqual(entries(fragment), [
    'KUBE-CLUSTER-IP 10.96.0.1,tcp:80',
    'KUBE-LOAD-BALANCER 203.0.113.1,tcp:80',
    'KUBE-LOAD-BALANCER-LOCAL 203.0.113.1,tcp:80',
    'KUBE-HEALTH-CHECK-NODE-PORT 32000',
  ]);
});

test('source ranges that leave out the node: it may not connect', () => {
  const parts = web({
    loadBalancerVIPs: ['203.0.113.1'],
    sourceRanges: ['198.51.100.0/24', '198.51.101.7/32'],
  });
  const fragment = compile(planOf(parts));
  assert.deepEqual(entries(fragment).slice(1), [
    'KUBE-LOAD-BALANCER 203.0.113.1,tcp:80',
    'KUBE-LOAD-BALANCER-FW 203.0.113.1,tcp:80',
    'KUBE-LOAD-BALANCER-SOURCE-CIDR 203.0.113.1,tcp:80,198.51.100.0/24',
    'KUBE-LOAD-BALANCER-SOURCE-CIDR 203.0.113.1,tcp:80,198.51.101.7',
  ]);
  assert.deepEqual(fragment.outFilter, [
    '-s 203.0.113.1 -m ipvs --vaddr 203.0.113.1 --vproto tcp --vport 80 -j DROP',
  ]);
});

test('source ranges that include the node admit it, by the address it sends from', () => {
  const parts = web({ loadBalancerVIPs: ['203.0.113.1', '203.0.113.2'], sourceRanges: ['192.0.2.0/24'] });
  const fragment = compile(planOf(parts));
  assert.deepEqual(
    entries(fragment).filter((entry) => entry.startsWith('KUBE-LOAD-BALANCER-SOURCE-IP')),
    [
      'KUBE-LOAD-BALANCER-SOURCE-IP 203.0.113.1,tcp:80,203.0.113.1',
      'KUBE-LOAD-BALANCER-SOURCE-IP 203.0.113.2,tcp:80,203.0.113.2',
    ],
  );
  assert.deepEqual(fragment.outFilter, []);
});

test('affinity and the scheduler make flags', () => {
  const rows = [
    ['rr', 0, 0],
    ['rr', 600, 0x1],
    ['mh', 0, 0x10],
    ['mh', 600, 0x11],
  ] as const;
  for (const [scheduler, affinitySeconds, flags] of rows) {
    const { servers } = compile(planOf(web({ affinitySeconds })), { scheduler });
    const server = servers.get('10.96.0.1:80/TCP')?.server;
    assert.deepEqual(server, {
      address: '10.96.0.1',
      port: 80,
      protocol: 'TCP',
      scheduler,
      flags,
      timeout: affinitySeconds,
      netmask: 0xffffffff,
    });
  }
});

test('an IPv6 service is served, bound, and in the sets of IPv6', () => {
  const ipv6 = { family: 'IPv6', nodePortAddresses: nodePortAddresses('IPv6', ['10.0.0.0/8']) } as const;
  const plan = planOf({ clusterIP: 'fd00:96::1', nodePort: 30080 }, [{ ip: 'fd00:244::1', local: true }]);
  const fragment = compile(plan, ipv6, ['192.0.2.5', 'fe80::1', '2001:db8::5', '::1']);
  assert.deepEqual(servers(fragment), [
    '[fd00:96::1]:80/TCP -> [fd00:244::1]:8080',
    '[2001:db8::5]:30080/TCP -> [fd00:244::1]:8080',
  ]);
  assert.equal(fragment.servers.get('[fd00:96::1]:80/TCP')?.server.netmask, 128);
  assert.deepEqual(fragment.entries[0], {
    set: 'KUBE-LOOP-BACK',
    entry: 'fd00:244::1,tcp:8080,fd00:244::1',
  });
});

test('an address that a service has twice is one virtual server, with the policy of the cluster IP', () => {
  const parts = web({ externalIPs: ['10.96.0.1'], externalPolicyLocal: true });
  assert.deepEqual(servers(compile(planOf(parts, [here, there]))), [
    '10.96.0.1:80/TCP -> 10.244.0.1:8080 10.244.1.1:8080',
  ]);
});

test('a hash that the Service asks for is the scheduler mh, which passes over real servers that drain', () => {
  for (const [balance, scheduler, flags] of [
    ['hash', 'rr', 0x18],
    ['hash-client', 'rr', 0x8],
    ['hash', 'mh', 0x18],
    ['hash-client', 'mh', 0x8],
  ] as const) {
    const fragment = compile(planOf(web({ balance }), [here, there]), { scheduler });
    const server = fragment.servers.get('10.96.0.1:80/TCP')?.server;
    assert.deepEqual([server?.scheduler, server?.flags], ['mh', flags], `${balance} with ${scheduler}`);
  }
});
