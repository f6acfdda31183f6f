/** Compares the kernel's answers about packets, and its differences, with the plans. */
import assert from 'node:assert/strict';
import { after, before, suite, test } from 'node:test';
import fc from 'fast-check';
import type { Packet } from '../../src/backends/inspection.ts';
import { NftablesInspection } from '../../src/backends/nftables/inspection.ts';
import { packetRules } from '../../src/backends/nftables/packet-rules.ts';
import { fateDifferences } from '../../src/inspect/compare-fates.ts';
import { type Explanation, explainPacket } from '../../src/inspect/explain-packet.ts';
import { openKernel } from '../../src/kernel/open.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { type Family, families, familyOf } from '../../src/model/ip.ts';
import type { ServicePlan } from '../../src/plan/service-plan.ts';
import { inNamespace, sh } from '../cluster/lab/namespace.ts';
import type { EndpointParts, ServicePortParts } from '../cluster/objects.ts';
import { planOf, plansByKey } from '../cluster/plans.ts';
import { isBrief } from '../contract/brief.ts';
import { NodeUnderTest, nodeIPs, settingsOf, type Variant } from './harness.ts';

/** Addresses of both families, under the same names. */
const addresses: Readonly<Record<Family, Readonly<Record<string, string>>>> = {
  IPv4: {
    node: nodeIPs.IPv4,
    second: '192.0.2.77',
    loopback: '127.0.0.1',
    pod: '10.244.1.30',
    remotePod: '10.244.2.30',
    client: '203.0.113.7',
    vip: '198.51.100.8',
    external: '198.51.100.9',
    clusterIP: '10.96.0.1',
    otherClusterIP: '10.96.0.2',
    unallocated: '10.96.7.7',
  },
  IPv6: {
    node: nodeIPs.IPv6,
    second: '2001:db8:0:1::77',
    loopback: '::1',
    pod: 'fd00:244:1::30',
    remotePod: 'fd00:244:2::30',
    client: '2001:db8:113::7',
    vip: '2001:db8:51::8',
    external: '2001:db8:51::9',
    clusterIP: 'fd00:96::1',
    otherClusterIP: 'fd00:96::2',
    unallocated: 'fd00:96::7',
  },
};

const ranges: Readonly<Record<Family, readonly string[]>> = {
  IPv4: ['203.0.113.0/24', '10.244.1.0/24', '192.0.2.0/24', '203.0.113.7/32'],
  IPv6: ['2001:db8:113::/64', 'fd00:244:1::/64', '2001:db8:0:1::/64', '2001:db8:113::7/128'],
};

function at(family: Family, name: string): string {
  const address = addresses[family][name];
  assert.ok(address !== undefined, name);
  return address;
}

const endpoint = (family: Family) =>
  fc.record<EndpointParts>({
    ip: fc.constantFrom(
      ...(family === 'IPv4'
        ? ['10.244.1.30', '10.244.1.21', '10.244.1.22', '10.244.2.30', '10.244.2.31', nodeIPs.IPv4]
        : ['fd00:244:1::30', 'fd00:244:1::21', 'fd00:244:1::22', 'fd00:244:2::30', nodeIPs.IPv6]),
    ),
    port: fc.constantFrom(8080, 9090),
    state: fc.constantFrom('ready', 'ready', 'draining', 'gone'),
  });

const parts = (family: Family, name: string, clusterIP: string) =>
  fc.record<ServicePortParts>({
    clusterIP: fc.constant(clusterIP),
    name: fc.constant(name),
    protocol: fc.constantFrom('TCP', 'UDP'),
    nodePort: fc.constantFrom(0, 30_080),
    affinitySeconds: fc.constantFrom(0, 0, 600),
    externalIPs: fc.subarray([at(family, 'external'), at(family, 'second')]),
    loadBalancerVIPs: fc.subarray([at(family, 'vip'), at(family, 'external')]),
    sourceRanges: fc.subarray([...ranges[family]]),
    externalPolicyLocal: fc.boolean(),
    internalPolicyLocal: fc.boolean(),
  });

const plan = (family: Family, name: string, clusterIP: string) =>
  fc
    .tuple(
      parts(family, name, at(family, clusterIP)),
      fc.uniqueArray(endpoint(family), { maxLength: 4, selector: ({ ip, port }) => `${ip} ${port}` }),
    )
    .map(([port, endpoints]) =>
      planOf(
        port,
        endpoints.map((one) => ({ ...one, local: isHere(family, one.ip) })),
      ),
    );

function isHere(family: Family, ip: string): boolean {
  return ip === nodeIPs[family] || ip.startsWith(family === 'IPv4' ? '10.244.1.' : 'fd00:244:1::');
}

const packet = (family: Family) =>
  fc
    .record({
      source: fc.constantFrom('node', 'second', 'pod', 'remotePod', 'client', 'vip'),
      destination: fc.constantFrom(
        ...[
          'clusterIP',
          'otherClusterIP',
          'external',
          'vip',
          'node',
          'second',
          'loopback',
          'unallocated',
          'client',
        ],
      ),
      port: fc.constantFrom(80, 80, 30_080, 81),
      protocol: fc.constantFrom('TCP' as const, 'UDP' as const),
    })
    .map(({ source, destination, ...rest }): Packet => {
      const isOwn = source === 'node' || source === 'second';
      return {
        family,
        source: at(family, source),
        destination: at(family, destination),
        origin: isOwn ? 'node' : { interface: source === 'pod' ? 'veth1' : 'eth0' },
        ...rest,
      };
    });

const variant = (family: Family) =>
  fc.record<Variant>({
    masqueradeAll: fc.boolean(),
    nodePortAddresses: fc.constantFrom(['primary'], ['all'], ['localhost', 'primary']),
    localhostNodePorts: fc.boolean(),
    localDetector: fc.constantFrom(
      { kind: 'cidr', cidr: family === 'IPv4' ? '10.244.0.0/16' : 'fd00:244::/48' },
      { kind: 'prefix', prefix: 'veth' },
      { kind: 'interface', name: 'veth1' },
      { kind: 'none' },
    ),
  });

function serviceCIDRsOf(family: Family): string[] {
  return [family === 'IPv4' ? '10.96.0.0/16' : 'fd00:96::/112'];
}

function explained(packet: Packet, family: Family, choice: Variant, ...plans: ServicePlan[]): Explanation {
  const { nodeIP, localDetector, masqueradeAll, localhostNodePorts, ...settings } = settingsOf(
    family,
    choice,
  );
  const ownAddresses = ['node', 'second', 'loopback'].map((name) => at(family, name));
  const facts = {
    family,
    nodeIP,
    ownAddresses,
    nodePortAddresses: settings.nodePortAddresses,
    localDetector,
    masqueradeAll,
    serviceCIDRs: serviceCIDRsOf(family),
  };
  return explainPacket(packet, plansByKey(...plans), facts, packetRules(localhostNodePorts));
}

inNamespace(import.meta.url, () => {
  let node: NodeUnderTest;

  before(async () => {
    for (const family of families) {
      const prefix = family === 'IPv4' ? 32 : 128;
      for (const name of ['node', 'second']) sh(`ip addr add ${at(family, name)}/${prefix} dev lo`);
    }
    node = await NodeUnderTest.open();
  });
  after(() => node.close());

  /** Passes an inspection of the kernel to `look`. */
  const inspect = async <T>(
    family: Family,
    choice: Variant,
    look: (one: NftablesInspection) => Promise<T>,
  ) => {
    const kernel = await openKernel(systemClock);
    const one = new NftablesInspection({
      settings: settingsOf(family, choice),
      kernel,
      clock: systemClock,
      loopback: () => ({ outlook: async () => undefined }),
    });
    try {
      return await look(one);
    } finally {
      await one.close();
    }
  };

  const requestOf = (family: Family, plans: readonly ServicePlan[]) => ({
    plans: plansByKey(...plans),
    serviceCIDRs: serviceCIDRsOf(family),
    totalEndpoints: 0,
  });

  for (const family of families) {
    test(`${family}: the kernel says of any packet what the plans say`, async () => {
      const everything = fc.record({
        choice: variant(family),
        plans: fc.tuple(plan(family, 'a', 'clusterIP'), plan(family, 'b', 'otherClusterIP')),
        packets: fc.array(packet(family), { minLength: 30, maxLength: 30 }),
      });
      await fc.assert(
        fc.asyncProperty(everything, async ({ choice, plans, packets }) => {
          await node.program(plans, choice, 'all');
          await inspect(family, choice, async (one) => {
            for (const asked of packets) {
              const planned = explained(asked, family, choice, ...plans);
              // Listeners of the process serve it; test/explain tests those.
              if (planned.fate.action === 'forward' && asked.destination === at(family, 'loopback')) continue;
              const { fate, evidence } = await one.ask(asked);
              const differences = fateDifferences(planned.fate, fate);
              assert.deepEqual(differences, [], JSON.stringify({ asked, planned, fate, evidence }, null, 1));
            }
            assert.deepEqual(await one.compare(requestOf(family, plans)), []);
          });
          node.complaints.length = 0;
        }),
        { numRuns: isBrief ? 8 : 40, endOnFailure: true },
      );
    });
  }

  suite('a table that another program changed', () => {
    const web = planOf({ clusterIP: '10.96.0.1', nodePort: 30_080 }, [
      { ip: '10.244.1.21' },
      { ip: '10.244.2.30' },
    ]);
    const asked: Packet = {
      family: 'IPv4',
      protocol: 'TCP',
      source: '10.244.1.30',
      destination: '10.96.0.1',
      port: 80,
      origin: { interface: 'veth1' },
    };
    const look = () =>
      inspect('IPv4', {}, async (one) => ({
        answer: await one.ask(asked),
        differences: await one.compare(requestOf('IPv4', [web])),
      }));

    before(async () => {
      sh('nft flush ruleset');
      await node.program([web], {}, 'all');
    });

    test('an intact table shows every element on the way of a packet', async () => {
      const { answer, differences } = await look();
      assert.deepEqual(differences, []);
      assert.deepEqual(answer.evidence, [
        'frontends 10.96.0.1 . tcp . 80 : 0:1',
        'handlers 0:1 : goto cluster-pick-2',
        'endpoints 10.96.0.1 . tcp . 80 . 0 : 10.244.1.21 . 8080',
        'endpoints 10.96.0.1 . tcp . 80 . 1 : 10.244.2.30 . 8080',
        'chain cluster-pick-2: dnat',
      ]);
    });

    test('a missing endpoint is named', async () => {
      sh('nft delete element ip kube-proxy endpoints { 10.96.0.1 . tcp . 80 . 1 }');
      const { answer, differences } = await look();
      assert.deepEqual(answer.fate, {
        action: 'forward',
        targets: [{ endpoint: '10.244.1.21:8080', probability: 1, masquerade: false }],
        affinitySeconds: 0,
      });
      assert.ok(
        answer.evidence.includes('missing: endpoints 10.96.0.1 . tcp . 80 . 1'),
        answer.evidence.join('\n'),
      );
      assert.deepEqual(differences, [
        {
          service: 'default/web/TCP',
          kind: 'element',
          object: 'endpoints 10.96.0.1 . tcp . 80 . 1',
          wanted: '10.244.2.30 . 8080',
          found: undefined,
        },
      ]);
    });

    test('an inspection writes nothing', async () => {
      await node.program([web], {}, 'all');
      const before = sh('nft -s list ruleset');
      await look();
      assert.equal(sh('nft -s list ruleset'), before);
    });

    test('surplus elements are attributed to the service whose frontend they use', async () => {
      sh('nft add element ip kube-proxy endpoints { 10.96.0.1 . tcp . 80 . 7 : 10.9.9.9 . 99 }');
      sh('nft add element ip kube-proxy cluster-addresses { 10.96.0.99 }');
      const { differences } = await look();
      assert.deepEqual(
        differences.map(({ service, object, wanted, found }) => [service, object, wanted, found]),
        [
          [undefined, 'cluster-addresses 10.96.0.99', undefined, 'present'],
          ['default/web/TCP', 'endpoints 10.96.0.1 . tcp . 80 . 7', undefined, '10.9.9.9 . 99'],
        ],
      );
    });

    test('foreign and missing rules are reported', async () => {
      await node.program([web], {}, 'all');
      sh('nft insert rule ip kube-proxy cluster-pick-2 drop');
      const { answer, differences } = await look();
      assert.deepEqual(answer.fate, { action: 'drop' });
      assert.deepEqual(
        differences.map(({ service, kind, object }) => [service, kind, object]),
        [[undefined, 'rules', 'cluster-pick-2']],
      );
    });

    test('a missing table is reported', async () => {
      sh('nft delete table ip kube-proxy');
      const { answer, differences } = await look();
      assert.deepEqual(answer, {
        fate: { action: 'pass' },
        evidence: ['table ip kube-proxy is not there, or empty'],
        lookedAt: 'table ip kube-proxy',
      });
      assert.deepEqual(differences[0], {
        service: undefined,
        kind: 'table',
        object: 'ip kube-proxy',
        wanted: 'kube-proxy-ts layout 3',
        found: undefined,
      });
      assert.ok(differences.some(({ service }) => service === 'default/web/TCP'));
      await node.program([web], {}, 'all');
    });
  });

  test('an affinity record decides for its client', async () => {
    const sticky = planOf({ clusterIP: '10.96.0.1', affinitySeconds: 600 }, [
      { ip: '10.244.1.21' },
      { ip: '10.244.2.30' },
    ]);
    await node.program([sticky], {}, 'all');
    const asked: Packet = {
      family: familyOf('10.96.0.1') ?? 'IPv4',
      protocol: 'TCP',
      source: '203.0.113.7',
      destination: '10.96.0.1',
      port: 80,
      origin: { interface: 'eth0' },
    };
    const ask = () => inspect('IPv4', {}, (one) => one.ask(asked));
    const fresh = (await ask()).fate;
    assert.equal(fresh.action === 'forward' && fresh.targets.length, 2);
    assert.equal(fresh.action === 'forward' && fresh.affinitySeconds, 600);
    const members = sh('nft list map ip kube-proxy sticky-members');
    const member = /([0-9a-f]+:[0-9a-f]+) : 10\.244\.2\.30/.exec(members)?.[1];
    assert.ok(member, members);
    const service = `${member.split(':')[0]}:0`;
    sh(`nft add element ip kube-proxy clients { ${service} . 203.0.113.7 timeout 600s : ${member} }`);
    const { fate, evidence, bound } = await ask();
    assert.equal(bound?.endpoint, '10.244.2.30:8080');
    assert.ok(bound.secondsLeft > 500 && bound.secondsLeft <= 600, String(bound.secondsLeft));
    assert.deepEqual(fate, {
      action: 'forward',
      targets: [{ endpoint: '10.244.2.30:8080', probability: 1, masquerade: true }],
      affinitySeconds: 600,
    });
    assert.ok(
      evidence.some((line) => line.startsWith(`clients ${service} . 203.0.113.7`)),
      evidence.join('\n'),
    );
    const planned = explained(asked, 'IPv4', {}, sticky);
    assert.deepEqual(fateDifferences(planned.fate, fate, true), []);
  });
});
