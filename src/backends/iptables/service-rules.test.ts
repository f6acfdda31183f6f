import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import type { EndpointParts, ServicePortParts } from '../../../test/cluster/objects.ts';
import { planOf } from '../../../test/cluster/plans.ts';
import { settingsOf } from '../../../test/iptables/harness.ts';
import { planServicePort } from '../../plan/plan.ts';
import type { ServicePlan } from '../../plan/service-plan.ts';
import { compileService, ownChains } from './compile.ts';
import { probabilityText } from './endpoint-rules.ts';
import { serviceNames } from './names.ts';
import { countServiceRules, serviceChains, serviceRules } from './service-rules.ts';
import type { IptablesSettings } from './settings.ts';

const clusterIP = '10.96.0.1';
const here: EndpointParts = { ip: '10.244.0.1', local: true };
const there: EndpointParts = { ip: '10.244.9.1' };

/** The rules of a service port, with chains named by their prefix alone. */
function rulesOf(
  parts: Partial<ServicePortParts>,
  endpoints: readonly EndpointParts[],
  changes: Partial<IptablesSettings> = {},
) {
  return rendered(planOf({ clusterIP, ...parts }, endpoints), settingsOf('IPv4', changes));
}

function rendered(plan: ServicePlan, settings: IptablesSettings) {
  const service = compileService(plan, settings, { comments: true, countLocalhost: false });
  const short = (text: string) =>
    text
      .replace(/KUBE-(SVC|SVL|EXT|FW|SEP)-\w{16}/g, '$1')
      .replace(/-m comment --comment ("[^"]*"|[^"\s]+) /g, '');
  const own = ownChains(service, settings);
  return {
    chains: [...new Set(own.declared.map(short))].join(' '),
    own: own.rules().map(short),
    nat: service.dispatch.nat.map(short),
    filter: service.dispatch.filter.map(short),
  };
}

const inChain = (rules: readonly string[], chain: string) =>
  rules.filter((rule) => rule.startsWith(`-A ${chain} `)).map((rule) => rule.slice(chain.length + 4));

test('one in n, with ten decimals', () => {
  const known = new Map([
    [2, '0.5000000000'],
    [3, '0.3333333333'],
    [1024, '0.0009765625'],
    [2048, '0.0004882812'],
    [100_001, '0.0000099999'],
  ]);
  for (const [n, text] of known) assert.equal(probabilityText(n), text);
});

test('endpoints are drawn in the byte order of their names', () => {
  const { own } = rulesOf({}, [{ ip: '10.0.1.2' }, { ip: '10.0.1.10' }, { ip: '10.0.1.1' }]);
  const targets = inChain(own, 'SEP').flatMap((rule) => /--to-destination (\S+)/.exec(rule)?.[1] ?? []);
  assert.deepEqual(targets, ['10.0.1.10:8080', '10.0.1.1:8080', '10.0.1.2:8080']);
  assert.deepEqual(inChain(own, 'SVC').slice(1), [
    '-m statistic --mode random --probability 0.3333333333 -j SEP',
    '-m statistic --mode random --probability 0.5000000000 -j SEP',
    '-j SEP',
  ]);
});

test('which endpoints take traffic is what the plan says, whatever the policy', () => {
  const local = { action: 'forward', endpoints: 'local', reason: '' } as const;
  const plan = planOf({ clusterIP, nodePort: 30080 }, [here]);
  const { externalIPs, usesClusterEndpoints, externallyAccessible, near, topology, balance } = plan;
  const derived = {
    externalIPs,
    usesClusterEndpoints,
    usesLocalEndpoints: true,
    externallyAccessible,
    near,
    topology,
    balance,
  };
  const ofPlan = { ...plan, ...derived, local: plan.cluster, internal: local, external: local };
  const { own, nat } = rendered(ofPlan, settingsOf('IPv4'));
  assert.ok(nat.includes('-A KUBE-SERVICES -m tcp -p tcp -d 10.96.0.1 --dport 80 -j SVL'));
  assert.match(inChain(own, 'SVL')[0] ?? '', / -d 10\.96\.0\.1 --dport 80 .* -j KUBE-MARK-MASQ$/);
  assert.equal(inChain(own, 'EXT').at(-1), '-j SVL');
});

test('IPv6 addresses are in brackets only before a port', () => {
  const plan = planOf({ clusterIP: 'fd00:96::1' }, [{ ip: 'fd00:244::1' }]);
  const { own, nat } = rendered(plan, settingsOf('IPv6'));
  assert.deepEqual(own, [
    '-A SVC -m tcp -p tcp -d fd00:96::1 --dport 80 ! -s fd00:244::/48 -j KUBE-MARK-MASQ',
    '-A SVC -j SEP',
    '-A SEP -s fd00:244::1 -j KUBE-MARK-MASQ',
    '-A SEP -m tcp -p tcp -j DNAT --to-destination [fd00:244::1]:8080',
  ]);
  assert.deepEqual(nat, ['-A KUBE-SERVICES -m tcp -p tcp -d fd00:96::1 --dport 80 -j SVC']);
});

describe('what counts as local', () => {
  const detectors: readonly (readonly [IptablesSettings['localDetector'], string])[] = [
    [{ kind: 'cidr', cidr: '10.244.0.0/16' }, '-s 10.244.0.0/16'],
    [{ kind: 'interface', name: 'cbr0' }, '-i cbr0'],
    [{ kind: 'prefix', prefix: 'veth' }, '-i veth+'],
  ];
  const external = { nodePort: 30080, externalPolicyLocal: true };
  for (const [localDetector, match] of detectors) {
    test(match, () => {
      const { own } = rulesOf(external, [here], { localDetector });
      assert.equal(
        inChain(own, 'SVC')[0],
        `-m tcp -p tcp -d 10.96.0.1 --dport 80 ! ${match} -j KUBE-MARK-MASQ`,
      );
      assert.equal(inChain(own, 'EXT')[0], `${match} -j SVC`);
    });
  }
  test('nothing: the rules that need to know are left out', () => {
    const { own } = rulesOf(external, [here], { localDetector: { kind: 'none' } });
    assert.deepEqual(inChain(own, 'SVC'), ['-j SEP']);
    assert.equal(inChain(own, 'EXT').length, 3);
  });
  test('does not matter when everything is masqueraded; external chains stay as they are', () => {
    const all = rulesOf(external, [here], { masqueradeAll: true }).own;
    assert.equal(inChain(all, 'SVC')[0], '-m tcp -p tcp -d 10.96.0.1 --dport 80 -j KUBE-MARK-MASQ');
    assert.deepEqual(inChain(all, 'EXT'), inChain(rulesOf(external, [here]).own, 'EXT'));
  });
});

describe('endpoints that are no longer ready', () => {
  test('gone everywhere: rejected, no chain', () => {
    const { chains, filter, nat } = rulesOf({ nodePort: 30080 }, [{ ...here, state: 'gone' }]);
    assert.equal(chains, '');
    assert.deepEqual(nat, []);
    assert.deepEqual(
      filter.map((rule) => / -j (\w+)$/.exec(rule)?.[1]),
      ['REJECT', 'REJECT'],
    );
  });
  test('all draining: served as ever', () => {
    const { filter, own } = rulesOf({}, [
      { ...here, state: 'draining' },
      { ...there, state: 'draining' },
    ]);
    assert.deepEqual(filter, []);
    assert.equal(inChain(own, 'SVC').length, 3);
  });
  test('local ones draining, policy Local: outside traffic still goes to them', () => {
    const external = { nodePort: 30080, externalPolicyLocal: true };
    const { own, filter } = rulesOf(external, [{ ...here, state: 'draining' }, there]);
    assert.equal(inChain(own, 'SVC').length, 2);
    assert.deepEqual(inChain(own, 'SVL'), ['-j SEP']);
    assert.equal(inChain(own, 'SEP').length, 4);
    assert.equal(inChain(own, 'EXT').at(-1), '-j SVL');
    assert.deepEqual(filter, []);
  });
  test('local ones gone, policy Local: dropped, but pods and the node get through', () => {
    const external = { nodePort: 30080, externalPolicyLocal: true, externalIPs: ['203.0.113.9'] };
    const { own, filter } = rulesOf(external, [{ ...here, state: 'gone' }, there]);
    assert.deepEqual(inChain(own, 'EXT'), [
      '-s 10.244.0.0/16 -j SVC',
      '-m addrtype --src-type LOCAL -j KUBE-MARK-MASQ',
      '-m addrtype --src-type LOCAL -j SVC',
    ]);
    assert.deepEqual(filter, [
      '-A KUBE-EXTERNAL-SERVICES -m tcp -p tcp -d 203.0.113.9 --dport 80 -j DROP',
      '-A KUBE-EXTERNAL-SERVICES -m addrtype --dst-type LOCAL -m tcp -p tcp --dport 30080 -j DROP',
    ]);
  });
  test('none at all, policy Local: rejected, not dropped', () => {
    const { filter } = rulesOf({ nodePort: 30080, externalPolicyLocal: true }, []);
    assert.ok(filter.every((rule) => rule.endsWith('-j REJECT')));
  });
});

describe('internal policy Local', () => {
  test('without a local endpoint: dropped, no chain', () => {
    const { chains, filter } = rulesOf({ internalPolicyLocal: true }, [there]);
    assert.equal(chains, '');
    assert.deepEqual(filter, ['-A KUBE-SERVICES -m tcp -p tcp -d 10.96.0.1 --dport 80 -j DROP']);
  });
  test('without a local endpoint, the node port works', () => {
    const { chains, own } = rulesOf({ internalPolicyLocal: true, nodePort: 30080 }, [there]);
    assert.equal(chains, 'EXT SVC SEP');
    assert.deepEqual(inChain(own, 'EXT'), ['-j KUBE-MARK-MASQ', '-j SVC']);
    assert.deepEqual(inChain(own, 'SVC'), ['-j SEP']);
  });
  test('with a local endpoint: its own chain masquerades', () => {
    const { chains, own, nat } = rulesOf({ internalPolicyLocal: true }, [here, there]);
    assert.equal(chains, 'SVL SEP');
    assert.match(inChain(own, 'SVL')[0] ?? '', /! -s 10\.244\.0\.0\/16 -j KUBE-MARK-MASQ$/);
    assert.ok(nat[0]?.endsWith('-j SVL'));
  });
  test('together with external policy Local: pods and the node use all endpoints', () => {
    const both = { internalPolicyLocal: true, externalPolicyLocal: true, nodePort: 30080 };
    const { own } = rulesOf(both, [here, there]);
    const targets = inChain(own, 'EXT').map((rule) => / -j (\S+)$/.exec(` ${rule}`)?.[1]);
    assert.deepEqual(targets, ['SVC', 'KUBE-MARK-MASQ', 'SVC', 'SVL']);
    assert.equal(inChain(own, 'SVC').length, 2);
  });
});

describe('source ranges', () => {
  const vip = { loadBalancerVIPs: ['198.51.100.1', '198.51.100.2'] };
  test('filter load balancer addresses, and nothing else', () => {
    const { own, nat, filter } = rulesOf(
      { ...vip, sourceRanges: ['203.0.113.0/25'], nodePort: 30080, externalIPs: ['192.0.2.7'] },
      [here],
    );
    assert.deepEqual(inChain(own, 'FW'), [
      '-s 203.0.113.0/25 -j EXT',
      '-m comment --comment "other traffic to default/web will be dropped by KUBE-PROXY-FIREWALL"',
    ]);
    const targets = nat.map((rule) => / -j (\S+)$/.exec(rule)?.[1]);
    assert.deepEqual(targets, ['SVC', 'EXT', 'FW', 'FW', 'EXT']);
    assert.equal(inChain(filter, 'KUBE-PROXY-FIREWALL').length, 2);
  });
  test('that hold the node let it in under the load balancer addresses, too', () => {
    const { own } = rulesOf({ ...vip, sourceRanges: ['203.0.113.0/24', '192.168.0.0/16'] }, [here]);
    const sources = inChain(own, 'FW').flatMap((rule) => /-s (\S+)/.exec(rule)?.[1] ?? []);
    assert.deepEqual(sources, ['203.0.113.0/24', '192.168.0.0/16', '198.51.100.1', '198.51.100.2']);
  });
  test('without a local endpoint, policy Local: filtered and dropped', () => {
    const local = { ...vip, sourceRanges: ['203.0.113.0/24'], externalPolicyLocal: true };
    const { chains, own, filter } = rulesOf(local, [there]);
    assert.equal(chains, 'EXT FW SVC SEP');
    assert.ok(!inChain(own, 'EXT').includes('-j SVL'));
    assert.equal(inChain(filter, 'KUBE-PROXY-FIREWALL').length, 2);
    assert.equal(inChain(filter, 'KUBE-EXTERNAL-SERVICES').length, 2);
  });
  test('of a service without load balancer address are nothing', () => {
    const { chains } = rulesOf({ sourceRanges: ['203.0.113.0/24'], nodePort: 30080 }, [here]);
    assert.equal(chains, 'EXT SVC SEP');
  });
});

test('an address listed twice is dispatched twice', () => {
  const { nat } = rulesOf({ externalIPs: ['192.0.2.7', '192.0.2.7'], loadBalancerVIPs: ['192.0.2.7'] }, [
    here,
  ]);
  assert.equal(nat.filter((rule) => rule.includes('-d 192.0.2.7 ')).length, 3);
});

test('external IPs that are not allowed still make a chain, which nothing uses', () => {
  const { port, endpoints } = planOf({ clusterIP, externalIPs: ['192.0.2.7'] }, [here]);
  const context = { nodeName: 'n1', zone: '', allowExternalIPs: false };
  const { chains, nat } = rendered(planServicePort(port, endpoints, context), settingsOf('IPv4'));
  assert.equal(chains, 'EXT SVC SEP');
  assert.equal(nat.length, 1);
});

test('health checks are accepted over TCP for every port, whatever its endpoints', () => {
  const { filter } = rulesOf({ protocol: 'UDP', healthCheckNodePort: 32100 }, [here]);
  assert.deepEqual(filter, ['-A KUBE-NODEPORTS -m tcp -p tcp --dport 32100 -j ACCEPT']);
});

test('affinity asks every endpoint before it draws one', () => {
  const { own } = rulesOf({ affinitySeconds: 60, protocol: 'UDP' }, [here, there]);
  assert.deepEqual(inChain(own, 'SVC').slice(1), [
    '-m recent --name SEP --rcheck --seconds 60 --reap -j SEP',
    '-m recent --name SEP --rcheck --seconds 60 --reap -j SEP',
    '-m statistic --mode random --probability 0.5000000000 -j SEP',
    '-j SEP',
  ]);
  assert.equal(
    inChain(own, 'SEP')[1],
    '-m recent --name SEP --set -m udp -p udp -j DNAT --to-destination 10.244.0.1:8080',
  );
});

test('hints that leave out local endpoints: policy Local uses them all the same', () => {
  const { own } = rulesOf({ nodePort: 30080, externalPolicyLocal: true }, [
    { ...here, zoneHints: ['zone-b'] },
    { ...there, zoneHints: ['zone-a'] },
  ]);
  assert.deepEqual(inChain(own, 'SVC').length, 2);
  assert.deepEqual(inChain(own, 'SVL'), ['-j SEP']);
  assert.equal(inChain(own, 'SEP').length, 4);
});

test('every declared chain has rules, every jump goes to a declared chain, and the count is right', () => {
  const state = fc.constantFrom('ready' as const, 'draining' as const, 'gone' as const);
  const endpoint = fc.record({
    ip: fc.integer({ min: 1, max: 9 }).map((n) => `10.244.0.${n}`),
    local: fc.boolean(),
    state,
  });
  const ports = fc.record({
    nodePort: fc.constantFrom(0, 30080),
    affinitySeconds: fc.constantFrom(0, 60),
    externalIPs: fc.subarray(['192.0.2.7', '192.0.2.8']),
    loadBalancerVIPs: fc.subarray(['198.51.100.1', '198.51.100.2']),
    sourceRanges: fc.subarray(['203.0.113.0/24', '192.168.10.0/24']),
    externalPolicyLocal: fc.boolean(),
    internalPolicyLocal: fc.boolean(),
  });
  const endpoints = fc.uniqueArray(endpoint, { selector: ({ ip }) => ip });
  fc.assert(
    fc.property(ports, endpoints, fc.boolean(), (parts, list, masqueradeAll) => {
      const plan = planOf({ clusterIP, ...parts }, list);
      const settings = settingsOf('IPv4', { masqueradeAll });
      const chains = serviceChains(plan);
      const rules = serviceRules(plan, chains, settings, true);
      assert.equal(countServiceRules(plan, serviceNames(plan.port), settings), rules.length);
      const used = new Set(rules.map((rule) => rule.split(' ')[1]));
      assert.deepEqual([...used].sort(), [...chains.declared].sort());
      const { dispatch } = compileService(plan, settings, { comments: true, countLocalhost: true });
      for (const rule of [...rules, ...dispatch.nat]) {
        const target = / -j (KUBE-(?:SVC|SVL|EXT|FW|SEP)-\w+)/.exec(rule)?.[1];
        assert.ok(target === undefined || chains.declared.includes(target), rule);
      }
    }),
  );
});
