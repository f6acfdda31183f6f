import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import type { EndpointParts } from '../../test/cluster/objects.ts';
import { planOf, plansByKey } from '../../test/cluster/plans.ts';
import type { Packet } from '../backends/inspection.ts';
import { packetRules as iptablesRules } from '../backends/iptables/packet-rules.ts';
import { packetRules as ipvsRules } from '../backends/ipvs/packet-rules.ts';
import { packetRules as nftablesRules } from '../backends/nftables/packet-rules.ts';
import type { NodeFacts } from '../backends/node-facts.ts';
import { packetRules as userspaceRules } from '../backends/userspace/packet-rules.ts';
import { nodePortAddresses } from '../model/node-port-addresses.ts';
import type { ProxyMode } from '../model/proxy-mode.ts';
import type { Balance } from '../model/service-port.ts';
import type { ServicePlan } from '../plan/service-plan.ts';
import { type Explanation, explainPacket } from './explain-packet.ts';

/** Facts of the node, and what decides about the rules of its mode. */
interface TestFacts extends NodeFacts {
  readonly mode: ProxyMode;
  readonly localhostNodePorts: boolean;
  readonly scheduler: string;
}

const node: TestFacts = {
  mode: 'nftables',
  localhostNodePorts: false,
  scheduler: '',
  family: 'IPv4',
  nodeIP: '192.0.2.5',
  ownAddresses: ['127.0.0.1', '192.0.2.5', '192.0.2.77', '10.244.1.1'],
  nodePortAddresses: nodePortAddresses('IPv4', ['192.0.2.5/32']),
  localDetector: { kind: 'cidr', cidr: '10.244.0.0/16' },
  masqueradeAll: false,
  serviceCIDRs: ['10.96.0.0/16'],
};

const here = { ip: '10.244.1.21', local: true };
const there = { ip: '10.244.2.21' };
const vip = '198.51.100.8';
const external = '198.51.100.9';
const outside = '203.0.113.7';
const pod = '10.244.1.30';

function packetTo(destination: string, parts: Partial<Packet> = {}): Packet {
  const source = parts.source ?? pod;
  const origin = node.ownAddresses.includes(source) ? 'node' : { interface: 'eth0' };
  return { family: 'IPv4', protocol: 'TCP', source, destination, port: 80, origin, ...parts };
}

function rulesOf({ mode, localhostNodePorts, scheduler }: TestFacts) {
  const rules = {
    nftables: () => nftablesRules(localhostNodePorts),
    iptables: () => iptablesRules(localhostNodePorts),
    ipvs: () => ipvsRules(scheduler),
    userspace: () => userspaceRules(scheduler),
  };
  return rules[mode]();
}

function ask(packet: Packet, facts: Partial<TestFacts>, ...plans: ServicePlan[]): Explanation {
  const all = { ...node, ...facts };
  return explainPacket(packet, plansByKey(...plans), all, rulesOf(all));
}

/** Targets in short: `10.244.1.21 0.5`, with `masq` behind those that see the node. */
function fate(packet: Packet, facts: Partial<TestFacts>, ...plans: ServicePlan[]): string {
  const { fate } = ask(packet, facts, ...plans);
  if (fate.action !== 'forward') return fate.action;
  const targets = fate.targets.map(({ endpoint, probability, masquerade }) =>
    [endpoint.replace(':8080', ''), probability, ...(masquerade ? ['masq'] : [])].join(' '),
  );
  return targets.join(', ');
}

function says(explanation: Explanation, text: RegExp): void {
  assert.ok(
    explanation.reasons.some((reason) => text.test(reason)),
    `${text} in ${JSON.stringify(explanation.reasons)}`,
  );
}

const clusterIP = planOf({ clusterIP: '10.96.0.1' }, [here, there]);

suite('the frontend of a packet is', () => {
  test('a cluster IP', () => {
    const explanation = ask(packetTo('10.96.0.1'), {}, clusterIP);
    assert.equal(explanation.service, 'default/web/TCP');
    assert.equal(explanation.frontend, 'cluster IP 10.96.0.1:80/TCP');
    assert.equal(fate(packetTo('10.96.0.1'), {}, clusterIP), '10.244.1.21 0.5, 10.244.2.21 0.5');
    says(explanation, /internalTrafficPolicy is Cluster; 2 of 2 endpoints used: ready/);
    says(explanation, /one of 2 endpoints, all equally likely/);
  });

  test('an external IP, and a load balancer IP', () => {
    const plan = planOf({ clusterIP: '10.96.0.1', externalIPs: [external], loadBalancerVIPs: [vip] }, [here]);
    assert.equal(ask(packetTo(external), {}, plan).frontend, `external IP ${external}:80/TCP`);
    assert.equal(ask(packetTo(vip), {}, plan).frontend, `load balancer IP ${vip}:80/TCP`);
  });

  test('a node port, at an address that serves them', () => {
    const plan = planOf({ clusterIP: '10.96.0.1', nodePort: 30_080 }, [here]);
    const explanation = ask(packetTo('192.0.2.5', { port: 30_080 }), {}, plan);
    assert.equal(explanation.frontend, 'node port 30080/TCP at 192.0.2.5');
    const elsewhere = ask(packetTo('192.0.2.77', { port: 30_080 }), {}, plan);
    assert.deepEqual(elsewhere.fate, { action: 'pass' });
    says(elsewhere, /not served at 192.0.2.77/);
    const foreign = ask(packetTo(outside, { port: 30_080 }), {}, plan);
    assert.equal(foreign.service, undefined);
    assert.deepEqual(foreign.fate, { action: 'pass' });
  });

  test('every address of the node serves node ports where none are selected', () => {
    const facts = { nodePortAddresses: nodePortAddresses('IPv4', []) };
    const plan = planOf({ clusterIP: '10.96.0.1', nodePort: 30_080 }, [here]);
    assert.equal(fate(packetTo('192.0.2.77', { port: 30_080 }), facts, plan), '10.244.1.21 1 masq');
  });

  test('an address comes before a node port of the same number', () => {
    const address = planOf({ clusterIP: '10.96.0.1', name: 'a', externalIPs: ['192.0.2.5'], port: 30_080 });
    const port = planOf({ clusterIP: '10.96.0.2', name: 'b', nodePort: 30_080 }, [here]);
    assert.equal(fate(packetTo('192.0.2.5', { port: 30_080 }), {}, address, port), 'reject');
  });

  test('only one with its protocol and port', () => {
    assert.equal(ask(packetTo('10.96.0.1', { protocol: 'UDP' }), {}, clusterIP).service, undefined);
    assert.equal(ask(packetTo('10.96.0.1', { port: 81 }), {}, clusterIP).service, undefined);
  });

  test('when two services claim one address, every mode explains that the owner serves it, and names the other', () => {
    const a = planOf({ clusterIP: '10.96.0.9', name: 'a', externalIPs: ['10.96.0.1', external] }, [there]);
    const b = planOf({ clusterIP: '10.96.0.1', name: 'b', externalIPs: [external] }, [here]);
    for (const mode of ['nftables', 'iptables', 'ipvs', 'userspace'] as const) {
      const taken = ask(packetTo('10.96.0.1'), { mode }, a, b);
      assert.equal(taken.service, 'default/b/TCP');
      says(taken, /default\/a\/TCP claims the same .* not get it: a cluster IP comes before an external IP/);
      const shared = ask(packetTo(external), { mode }, b, a);
      assert.equal(shared.service, 'default/a/TCP');
      says(shared, /default\/b\/TCP claims the same destination .*: its name comes later/);
    }
  });

  test('missing when no service has the destination', () => {
    const explanation = ask(packetTo(outside), {}, clusterIP);
    assert.deepEqual(explanation.fate, { action: 'pass' });
    says(explanation, /No service has port 80\/TCP at 203.0.113.7/);
  });
});

suite('a packet is refused:', () => {
  test('a service without endpoints rejects', () => {
    const explanation = ask(packetTo('10.96.0.1'), {}, planOf({ clusterIP: '10.96.0.1' }));
    assert.deepEqual(explanation.fate, { action: 'reject' });
    says(explanation, /There are no endpoints/);
  });

  test('internal policy Local without an endpoint here drops', () => {
    const plan = planOf({ clusterIP: '10.96.0.1', internalPolicyLocal: true }, [there]);
    const explanation = ask(packetTo('10.96.0.1'), {}, plan);
    assert.deepEqual(explanation.fate, { action: 'drop' });
    says(explanation, /internalTrafficPolicy is Local and no endpoint on node n1 is ready/);
  });

  test('other ports of a cluster IP reject, unused addresses of service ranges drop', () => {
    const undefinedPort = ask(packetTo('10.96.0.1', { port: 81 }), {}, clusterIP);
    assert.deepEqual(undefinedPort.fate, { action: 'reject' });
    says(undefinedPort, /cluster IP of service default\/web, which has no port 81\/TCP/);
    const unallocated = ask(packetTo('10.96.7.7'), {}, clusterIP);
    assert.deepEqual(unallocated.fate, { action: 'drop' });
    says(unallocated, /in the service range 10.96.0.0\/16/);
  });

  test('a packet to an address of the node itself is not refused', () => {
    const facts = { ownAddresses: [...node.ownAddresses, '10.96.0.1', '10.96.7.7'] };
    assert.equal(fate(packetTo('10.96.0.1', { port: 81 }), facts, clusterIP), 'pass');
    assert.equal(fate(packetTo('10.96.7.7'), facts, clusterIP), 'pass');
  });

  test('sources outside of the admitted ranges drop, at load balancer IPs only', () => {
    const parts = { clusterIP: '10.96.0.1', externalIPs: [external], loadBalancerVIPs: [vip] };
    const plan = planOf({ ...parts, sourceRanges: ['203.0.113.0/24'] }, [here]);
    const blocked = ask(packetTo(vip), {}, plan);
    assert.deepEqual(blocked.fate, { action: 'drop' });
    says(blocked, /10.244.1.30 is in none of the admitted ranges \(203.0.113.0\/24\)/);
    const admitted = ask(packetTo(vip, { source: outside }), {}, plan);
    assert.equal(admitted.fate.action, 'forward');
    says(admitted, /in the admitted range 203.0.113.0\/24/);
    assert.equal(fate(packetTo(external), {}, plan), '10.244.1.21 1 masq');
    assert.equal(fate(packetTo('10.96.0.1'), {}, plan), '10.244.1.21 1');
  });

  test('a source outside of the admitted ranges is dropped even without endpoints', () => {
    const plan = planOf({
      clusterIP: '10.96.0.1',
      loadBalancerVIPs: [vip],
      sourceRanges: ['203.0.113.0/24'],
    });
    assert.equal(fate(packetTo(vip), {}, plan), 'drop');
    assert.equal(fate(packetTo(vip, { source: outside }), {}, plan), 'reject');
  });

  test('a node in the ranges may use the balancer address as its source', () => {
    const parts = { clusterIP: '10.96.0.1', loadBalancerVIPs: [vip] };
    const facts = { ownAddresses: [...node.ownAddresses, vip] };
    const ofNode = planOf({ ...parts, sourceRanges: ['192.0.2.0/24'] }, [here]);
    const packet = packetTo(vip, { source: vip, origin: 'node' });
    assert.equal(fate(packet, facts, ofNode), '10.244.1.21 1 masq');
    says(ask(packet, facts, ofNode), /since 192.0.2.5 is in the admitted range/);
    const ofOthers = planOf({ ...parts, sourceRanges: ['203.0.113.0/24'] }, [here]);
    assert.equal(fate(packet, facts, ofOthers), 'drop');
  });
});

suite('under external policy Local', () => {
  const parts = { clusterIP: '10.96.0.1', externalIPs: [external], externalPolicyLocal: true };
  const both = planOf(parts, [here, there]);
  const remote = planOf(parts, [there]);

  test('clients from outside go to endpoints here and keep their address', () => {
    const packet = packetTo(external, { source: outside });
    assert.equal(fate(packet, {}, both), '10.244.1.21 1');
    says(ask(packet, {}, both), /keeps the source address of clients/);
    assert.equal(fate(packet, {}, remote), 'drop');
  });

  test('pods go anywhere and keep their address', () => {
    assert.equal(fate(packetTo(external), {}, both), '10.244.1.21 0.5, 10.244.2.21 0.5');
    says(ask(packetTo(external), {}, both), /the sender is a pod \(10.244.1.30 is in the pod range/);
    assert.equal(fate(packetTo(external), {}, remote), '10.244.2.21 1');
  });

  test('the node goes anywhere and is masqueraded', () => {
    const packet = packetTo(external, { source: '192.0.2.5' });
    assert.equal(fate(packet, {}, remote), '10.244.2.21 1 masq');
    says(ask(packet, {}, remote), /the sender is this node itself/);
  });

  test('pods count as clients from outside when local traffic cannot be detected', () => {
    assert.equal(fate(packetTo(external), { localDetector: { kind: 'none' } }, both), '10.244.1.21 1');
  });

  test('a service without endpoints rejects all clients', () => {
    for (const source of [pod, outside, '192.0.2.5']) {
      assert.equal(fate(packetTo(external, { source }), {}, planOf(parts)), 'reject');
    }
  });
});

suite('a packet is masqueraded', () => {
  const target = '10.244.2.21 1';
  const plan = planOf({ clusterIP: '10.96.0.1', externalIPs: [external] }, [there]);

  test('to a cluster IP, for all clients but pods', () => {
    assert.equal(fate(packetTo('10.96.0.1'), {}, plan), target);
    assert.equal(fate(packetTo('10.96.0.1', { source: outside }), {}, plan), `${target} masq`);
    assert.equal(fate(packetTo('10.96.0.1', { source: '192.0.2.5' }), {}, plan), `${target} masq`);
    says(ask(packetTo('10.96.0.1', { source: outside }), {}, plan), /not in the pod range 10.244.0.0\/16/);
  });

  test('to a cluster IP, for all clients with masqueradeAll, for none when local traffic cannot be detected', () => {
    assert.equal(fate(packetTo('10.96.0.1'), { masqueradeAll: true }, plan), `${target} masq`);
    const packet = packetTo('10.96.0.1', { source: outside });
    assert.equal(fate(packet, { localDetector: { kind: 'none' } }, plan), target);
  });

  test('by the interface on which packets of pods arrive', () => {
    const by = (name: string): Packet =>
      packetTo('10.96.0.1', { source: outside, origin: { interface: name } });
    const bridge = { localDetector: { kind: 'interface', name: 'cni0' } } as const;
    assert.equal(fate(by('cni0'), bridge, plan), target);
    assert.equal(fate(by('cni01'), bridge, plan), `${target} masq`);
    const prefix = { localDetector: { kind: 'prefix', prefix: 'veth' } } as const;
    assert.equal(fate(by('veth7'), prefix, plan), target);
    assert.equal(fate(by(''), prefix, plan), `${target} masq`);
    says(ask(by(''), prefix, plan), /not known to arrive on an interface veth\*/);
    assert.equal(fate(packetTo('10.96.0.1', { origin: 'node' }), prefix, plan), `${target} masq`);
  });

  test('to an external address under policy Cluster, for all clients', () => {
    assert.equal(fate(packetTo(external), {}, plan), `${target} masq`);
    says(ask(packetTo(external), {}, plan), /replies have to come back through this node/);
  });

  test('when a pod is sent back to itself', () => {
    const packet = packetTo('10.96.0.1', { source: here.ip });
    assert.equal(fate(packet, {}, clusterIP), '10.244.1.21 0.5 masq, 10.244.2.21 0.5');
    says(ask(packet, {}, clusterIP), /pod 10.244.1.21 is sent back to itself/);
    const remote = packetTo('10.96.0.1', { source: there.ip });
    assert.equal(fate(remote, {}, clusterIP), '10.244.1.21 0.5, 10.244.2.21 0.5');
    assert.equal(fate(remote, { mode: 'iptables' }, clusterIP), '10.244.1.21 0.5, 10.244.2.21 0.5 masq');
  });
});

test('an endpoint with an address of the node sees the source address of clients from elsewhere', () => {
  const plan = planOf({ clusterIP: '10.96.0.1', externalIPs: [external] }, [
    { ip: '192.0.2.5', local: true },
  ]);
  const packet = packetTo(external, { source: outside });
  for (const mode of ['nftables', 'iptables', 'ipvs'] as const) {
    assert.equal(fate(packet, { mode }, plan), '192.0.2.5 1');
    says(ask(packet, { mode }, plan), /an address of this node: the packet stays here/);
    assert.equal(fate(packetTo(external, { source: '10.244.1.1' }), { mode }, plan), '192.0.2.5 1 masq');
  }
  assert.equal(fate(packet, { mode: 'userspace' }, plan), '192.0.2.5 1 masq');
});

suite('a Service that asks for a hash', () => {
  const hashed = (balance: Balance, endpoints: readonly EndpointParts[] = [here, there]) =>
    planOf({ clusterIP: '10.96.0.1', balance }, endpoints);
  const packet = packetTo('10.96.0.1');

  test('has one endpoint for an address where the table is known, and the words say why', () => {
    for (const mode of ['nftables', 'userspace'] as const) {
      const explanation = ask(packet, { mode }, hashed('hash-client'));
      assert.equal(explanation.fate.action === 'forward' && explanation.fate.targets.length, 1);
      says(
        explanation,
        /^Goes to 10\.244\.\d\.21:8080, by a hash of the client's address: the same one on every node/,
      );
    }
  });

  test('may have any endpoint in ipvs mode, where the kernel hashes', () => {
    for (const [balance, by] of [
      ['hash', 'address and port'],
      ['hash-client', 'address'],
    ] as const) {
      const explanation = ask(packet, { mode: 'ipvs' }, hashed(balance));
      assert.equal(explanation.fate.action === 'forward' && explanation.fate.targets.length, 2);
      says(
        explanation,
        new RegExp(`one of 2 endpoints, by a hash of the client's ${by}: the scheduler mh chooses`),
      );
    }
  });

  test('with too many endpoints goes to any of them, and the words say why', () => {
    const many = Array.from({ length: 121 }, (_, i) => ({ ip: `10.244.3.${i}` }));
    const explanation = ask(packet, {}, hashed('hash-client', many));
    assert.equal(explanation.fate.action === 'forward' && explanation.fate.targets.length, 121);
    says(explanation, /^No hash: it has more than 120 endpoints/);
  });

  test('goes to any endpoint where the mode cannot hash, and the words say so', () => {
    const plan = planOf({ clusterIP: '10.96.0.1', unsupportedBalance: 'hash' }, [here, there]);
    const explanation = ask(packet, { mode: 'iptables' }, plan);
    assert.equal(explanation.fate.action === 'forward' && explanation.fate.targets.length, 2);
    says(explanation, /^No hash: the Service asks for hash, which is not possible in this proxy mode;/);
  });
});

test('an explanation names client affinity and its time', () => {
  const plan = planOf({ clusterIP: '10.96.0.1', affinitySeconds: 600 }, [here, there]);
  const explanation = ask(packetTo('10.96.0.1'), {}, plan);
  assert.equal(explanation.fate.action === 'forward' && explanation.fate.affinitySeconds, 600);
  says(explanation, /within the last 600 s goes to the same endpoint again/);
});

test('an explanation names hints that narrow the choice', () => {
  const hinted = { ...here, zoneHints: ['zone-a'] };
  const plan = planOf({ clusterIP: '10.96.0.1' }, [hinted, { ...there, zoneHints: ['zone-b'] }]);
  assert.equal(fate(packetTo('10.96.0.1'), {}, plan), '10.244.1.21 1');
  says(
    ask(packetTo('10.96.0.1'), {}, plan),
    /1 of 2 ready endpoints hinted for zone zone-a \(PreferSameZone\)/,
  );
});

test('an IPv6 frontend and its endpoints are written with brackets', () => {
  const plan = planOf({ clusterIP: 'fd00:96::1' }, [{ ip: 'fd00:244::2' }]);
  const packet: Packet = { ...packetTo('fd00:96::1', { source: 'fd00:244::9' }), family: 'IPv6' };
  const explanation = ask(packet, { family: 'IPv6', localDetector: { kind: 'none' } }, plan);
  assert.equal(explanation.frontend, 'cluster IP [fd00:96::1]:80/TCP');
  const targets = [{ endpoint: '[fd00:244::2]:8080', probability: 1, masquerade: false }];
  assert.deepEqual(explanation.fate, { action: 'forward', targets, affinitySeconds: 0 });
});

suite('node ports at loopback addresses are', () => {
  const plan = planOf({ clusterIP: '10.96.0.1', nodePort: 30_080 }, [here]);
  const packet = packetTo('127.0.0.1', { source: '127.0.0.1', port: 30_080 });
  const all = { nodePortAddresses: nodePortAddresses('IPv4', []) };
  const explicit = { nodePortAddresses: nodePortAddresses('IPv4', ['127.0.0.0/8']) };

  test('ignored, rejected or served by the process in nftables mode', () => {
    assert.equal(fate(packet, all, plan), 'pass');
    says(ask(packet, all, plan), /the feature gate KubeProxyNFTablesLocalhostNodePorts is off/);
    const gateOn = { ...all, localhostNodePorts: true };
    assert.equal(fate(packet, gateOn, plan), 'reject');
    says(ask(packet, gateOn, plan), /nodePortAddresses selects 0\.0\.0\.0\/0, and names no loopback address/);
    const served = { ...explicit, localhostNodePorts: true };
    assert.equal(fate(packet, served, plan), '10.244.1.21 1 masq');
    says(ask(packet, served, plan), /kube-proxy itself listens at the loopback address/);
    const elsewhere = { ...packet, destination: '127.0.0.2' };
    assert.equal(fate(elsewhere, served, plan), 'pass');
    says(ask(elsewhere, served, plan), /kube-proxy listens at 127\.0\.0\.1 and ::1 only/);
    assert.equal(fate(packet, served, planOf({ clusterIP: '10.96.0.1', nodePort: 30_080 }, [])), 'pass');
  });

  test('served with policy Local only where an endpoint is on the node, in nftables mode', () => {
    const served = { ...explicit, localhostNodePorts: true };
    const parts = { clusterIP: '10.96.0.1', nodePort: 30_080, externalPolicyLocal: true };
    assert.equal(fate(packet, served, planOf(parts, [here, there])), '10.244.1.21 1 masq');
    assert.equal(fate(packet, served, planOf(parts, [there])), 'pass');
  });

  test('served where configured, and masqueraded, in iptables mode', () => {
    const facts = { ...all, mode: 'iptables', localhostNodePorts: true } as const;
    assert.equal(fate(packet, facts, plan), '10.244.1.21 1 masq');
    const off = { ...facts, localhostNodePorts: false };
    assert.equal(fate(packet, off, plan), 'pass');
    says(ask(packet, off, plan), /iptables\.localhostNodePorts is false/);
    assert.equal(
      fate(packet, { ...facts, nodePortAddresses: nodePortAddresses('IPv4', ['192.0.2.0/24']) }, plan),
      'pass',
    );
  });

  test('never served in ipvs mode', () => {
    assert.equal(fate(packet, { ...all, mode: 'ipvs' }, plan), 'pass');
    assert.equal(fate(packet, { ...explicit, mode: 'ipvs' }, plan), 'pass');
  });

  test('served as at other addresses in userspace mode', () => {
    assert.equal(fate(packet, { ...all, mode: 'userspace' }, plan), '10.244.1.21 1 masq');
    assert.equal(fate(packet, { ...explicit, mode: 'userspace' }, plan), '10.244.1.21 1 masq');
    assert.equal(fate(packet, { mode: 'userspace' }, plan), 'pass');
  });
});

suite('iptables mode', () => {
  const facts = { mode: 'iptables' } as const;

  test('ignores other ports of a cluster IP and unused addresses', () => {
    assert.equal(fate(packetTo('10.96.0.1', { port: 81 }), facts, clusterIP), 'pass');
    assert.equal(fate(packetTo('10.96.7.7'), facts, clusterIP), 'pass');
  });

  test('checks sources only with endpoints, and after external IPs', () => {
    const parts = { clusterIP: '10.96.0.1', loadBalancerVIPs: [vip], sourceRanges: ['203.0.113.0/24'] };
    assert.equal(fate(packetTo(vip), facts, planOf(parts)), 'reject');
    assert.equal(fate(packetTo(vip), facts, planOf(parts, [here])), 'drop');
    const twice = planOf({ ...parts, externalIPs: [vip] }, [here]);
    assert.equal(fate(packetTo(vip), facts, twice), '10.244.1.21 1 masq');
    assert.equal(fate(packetTo(vip), {}, twice), 'drop');
  });

  test('does not refuse the node itself an external address, unless the node has it', () => {
    const plan = planOf({ clusterIP: '10.96.0.1', externalIPs: [external] });
    const packet = packetTo(external, { source: '192.0.2.5' });
    assert.equal(fate(packet, facts, plan), 'pass');
    says(ask(packet, facts, plan), /does not refuse packets that the node itself sends/);
    assert.equal(fate(packet, { ...facts, ownAddresses: [external, '192.0.2.5'] }, plan), 'reject');
    assert.equal(fate(packetTo(external, { source: outside }), facts, plan), 'reject');
  });

  test('refuses a cluster IP that the node has only to the node itself', () => {
    const own = { ...facts, ownAddresses: [...node.ownAddresses, '10.96.0.1'] };
    const plan = planOf({ clusterIP: '10.96.0.1' });
    assert.equal(fate(packetTo('10.96.0.1'), own, plan), 'pass');
    assert.equal(fate(packetTo('10.96.0.1', { source: '192.0.2.5' }), own, plan), 'reject');
  });

  test('refuses node ports at every address, and serves them at the selected ones', () => {
    const at = (destination: string, plan: ServicePlan) =>
      fate(packetTo(destination, { source: outside, port: 30_080 }), facts, plan);
    const parts = { clusterIP: '10.96.0.1', nodePort: 30_080 };
    assert.equal(at('192.0.2.77', planOf(parts)), 'reject');
    assert.equal(at('192.0.2.77', planOf(parts, [here])), 'pass');
    assert.equal(at('192.0.2.5', planOf(parts, [here])), '10.244.1.21 1 masq');
  });
});

suite('ipvs mode', () => {
  const facts = { mode: 'ipvs' } as const;

  test('ignores the sender under external policy Local, and falls back to all endpoints', () => {
    const parts = { clusterIP: '10.96.0.1', externalIPs: [external], externalPolicyLocal: true };
    for (const source of [pod, outside, '192.0.2.5']) {
      const packet = packetTo(external, { source });
      assert.equal(fate(packet, facts, planOf(parts, [here, there])), '10.244.1.21 1');
      assert.equal(fate(packet, facts, planOf(parts, [there])), '10.244.2.21 1');
      assert.equal(fate(packet, facts, planOf(parts)), 'reject');
    }
    says(
      ask(packetTo(external), facts, planOf(parts, [there])),
      /ipvs mode uses the endpoints of policy Cluster instead/,
    );
  });

  test('rejects, where other modes drop, under internal policy Local without an endpoint on this node', () => {
    const plan = planOf({ clusterIP: '10.96.0.1', internalPolicyLocal: true }, [there]);
    assert.equal(fate(packetTo('10.96.0.1'), facts, plan), 'reject');
    says(ask(packetTo('10.96.0.1'), facts, plan), /virtual server without endpoints rejects/);
  });

  test('rejects other ports of every service address, apart from health check ports', () => {
    const plan = planOf({ clusterIP: '10.96.0.1', loadBalancerVIPs: [vip], healthCheckNodePort: 32_000 }, [
      here,
    ]);
    assert.equal(fate(packetTo('10.96.0.1', { port: 81 }), facts, plan), 'reject');
    assert.equal(fate(packetTo(vip, { port: 81 }), facts, plan), 'reject');
    assert.equal(fate(packetTo(vip, { port: 32_000 }), facts, plan), 'pass');
    assert.equal(fate(packetTo('10.96.7.7'), facts, plan), 'pass');
    const own = { ...facts, ownAddresses: [...node.ownAddresses, vip] };
    assert.equal(fate(packetTo(vip, { port: 81 }), own, plan), 'pass');
  });

  test('checks the source of the node only when it is the address of the load balancer', () => {
    const parts = { clusterIP: '10.96.0.1', loadBalancerVIPs: [vip] };
    const plan = planOf({ ...parts, sourceRanges: ['203.0.113.0/24'] }, [here]);
    assert.equal(fate(packetTo(vip, { source: vip, origin: 'node' }), facts, plan), 'drop');
    assert.equal(fate(packetTo(vip, { source: '192.0.2.5' }), facts, plan), '10.244.1.21 1 masq');
    assert.equal(fate(packetTo(vip), facts, plan), 'drop');
  });

  test('masquerades the node with a cluster IP as its source when local traffic cannot be detected', () => {
    const detector = { ...facts, localDetector: { kind: 'none' } } as const;
    const plan = planOf({ clusterIP: '10.96.0.1' }, [here]);
    const packet = packetTo('10.96.0.1', { source: '10.96.0.1', origin: 'node' });
    assert.equal(fate(packet, detector, plan), '10.244.1.21 1 masq');
    assert.equal(fate(packetTo('10.96.0.1', { source: outside }), detector, plan), '10.244.1.21 1');
  });

  test('names the scheduler that chooses the endpoint', () => {
    says(ask(packetTo('10.96.0.1'), { ...facts, scheduler: 'sh' }, clusterIP), /The scheduler sh chooses/);
  });

  test('does not serve node ports at link-local IPv6 addresses', () => {
    const plan = planOf({ clusterIP: 'fd00:96::1', nodePort: 30_080 }, [{ ip: 'fd00:244::2' }]);
    const v6 = {
      ...facts,
      family: 'IPv6',
      ownAddresses: ['fe80::5', '2001:db8::5'],
      nodePortAddresses: nodePortAddresses('IPv6', []),
    } as const;
    const at = (destination: string): string =>
      ask({ ...packetTo(destination, { port: 30_080 }), family: 'IPv6' }, v6, plan).fate.action;
    assert.equal(at('fe80::5'), 'pass');
    assert.equal(at('2001:db8::5'), 'forward');
  });
});

test('endpoints see pods in userspace mode, or this node where the process cannot use their addresses', () => {
  const facts = { mode: 'userspace' } as const;
  assert.equal(fate(packetTo('10.96.0.1'), facts, clusterIP), '10.244.1.21 0.5, 10.244.2.21 0.5');
  assert.equal(fate(packetTo('10.96.0.1', { port: 81 }), facts, clusterIP), 'reject');
  const withoutSource = userspaceRules('', undefined, () => false);
  const { fate: asNode } = explainPacket(packetTo('10.96.0.1'), plansByKey(clusterIP), node, withoutSource);
  assert.ok(asNode.action === 'forward' && asNode.targets.every(({ masquerade }) => masquerade));
});

suite('while packets are not captured in userspace mode', () => {
  const guarded = { loadBalancerVIPs: [vip], sourceRanges: ['203.0.113.0/24'] };
  const plan = planOf({ clusterIP: '10.96.0.1', nodePort: 30_080, ...guarded }, [here, there]);
  const { key } = plan.port;
  const place = (frontend: string, address: string, note = '') => ({ key, frontend, address, note });
  const direct = () => ({
    reason: 'no privileges',
    places: [
      place('10.96.0.1:80/TCP', '127.0.0.1:40000', 'not captured: no privileges'),
      place(':30080/TCP', '0.0.0.0:30080'),
      place(`${vip}:80/TCP`, '', 'not served: source ranges'),
    ],
  });
  const explained = (packet: Packet) =>
    explainPacket(packet, plansByKey(plan), node, userspaceRules('', direct));

  test('a service address is ignored, and the reasons say where it is served', () => {
    const explanation = explained(packetTo('10.96.0.1'));
    assert.deepEqual(explanation.fate, { action: 'pass' });
    assert.equal(explanation.service, key);
    says(explanation, /^Packets to service addresses are not captured: no privileges\.$/);
    says(explanation, /^It is served at 127\.0\.0\.1:40000 instead\.$/);
  });

  test('listeners are served at their own address, or at every address of the node', () => {
    for (const packet of [
      packetTo('127.0.0.1', { port: 40_000, source: '127.0.0.1' }),
      packetTo('192.0.2.77', { port: 30_080, source: outside }),
    ]) {
      const { fate, service } = explained(packet);
      assert.equal(service, key);
      assert.equal(fate.action === 'forward' && fate.targets.length, 2);
    }
    assert.equal(explained(packetTo('127.0.0.1', { port: 40_001 })).fate.action, 'pass');
    assert.equal(explained(packetTo('127.0.0.1', { port: 40_000, protocol: 'UDP' })).fate.action, 'pass');
    assert.equal(explained(packetTo('203.0.113.9', { port: 30_080 })).fate.action, 'pass');
  });

  test('a frontend that nothing serves is ignored for its own reason, and nothing is refused', () => {
    says(explained(packetTo(vip, { source: outside })), /^It is not served: source ranges\.$/);
    assert.equal(explained(packetTo('10.96.0.1', { port: 81 })).fate.action, 'pass');
    assert.equal(explained(packetTo('10.96.9.9')).fate.action, 'pass');
  });
});
