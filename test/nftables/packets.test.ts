/** Packet stories on a real kernel: cases of the catalogue in the nftables chapter, by their numbers. */

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { nftablesMode } from '../../src/backends/nftables/mode.ts';
import { RepairBudget } from '../../src/backends/repair-budget.ts';
import { defaultConfig } from '../../src/config/defaults.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { silentLogger } from '../../src/obs/log.ts';
import { createProxyMetrics } from '../../src/obs/proxy-metrics.ts';
import { Registry } from '../../src/obs/registry.ts';
import type { ServicePlan } from '../../src/plan/service-plan.ts';
import { questionOf } from '../cluster/lab/host.ts';
import { enterNamespace, hasProgram, labUnavailable, run } from '../cluster/lab/namespace.ts';
import { converse } from '../cluster/lab/traffic.ts';
import type { EndpointParts, ServicePortParts } from '../cluster/objects.ts';
import { planOf, plansByKey } from '../cluster/plans.ts';
import { eventually } from '../eventually.ts';
import { NodeUnderTest, settingsOf, type Variant } from './harness.ts';
import { A, A6, B, B6, Scene } from './scene.ts';

const skip = labUnavailable() ?? false;
const namespace = skip ? '' : enterNamespace(import.meta.url);

describe('nftables packet stories', { skip }, () => {
  let scene: Scene;
  let node: NodeUnderTest;

  before(async () => {
    scene = await Scene.build(namespace);
    node = await NodeUnderTest.open();
  });

  after(() => {
    node.close();
    scene.close();
  });

  const program = (parts: ServicePortParts, endpoints: readonly EndpointParts[], variant?: Variant) =>
    node.program([planOf(parts, endpoints)], variant);

  describe('cluster IP', () => {
    const web: ServicePortParts = { clusterIP: '10.96.0.41' };
    const vip = { address: '10.96.0.41', port: 80 };

    test('1: a local pod keeps its address', async () => {
      await program(web, [A, B]);
      assert.deepEqual(await scene.answers('pod', vip), { A: '10.244.1.5', B: '10.244.1.5' });
    });

    test('2: a process on the node is masqueraded', async () => {
      await program(web, [A, B]);
      assert.deepEqual(await scene.answers('node', vip), { A: 'MASQ', B: 'MASQ' });
    });

    test('3: a client outside is masqueraded', async () => {
      await program(web, [A, B]);
      assert.deepEqual(await scene.answers('outside', { ...vip, from: '203.0.113.5' }), {
        A: 'MASQ',
        B: 'MASQ',
      });
    });

    test('4: a remote pod is masqueraded, unless the detector covers all pods', async () => {
      await program(web, [A, B]);
      assert.deepEqual(await scene.answers('remote', vip), { A: 'MASQ', B: 'MASQ' });
      await program(web, [A, B], { localDetector: { kind: 'cidr', cidr: '10.244.0.0/16' } });
      assert.deepEqual(await scene.answers('remote', vip), { A: '10.244.2.5', B: '10.244.2.5' });
    });

    test('5: a pod that reaches itself is masqueraded, and only then', async () => {
      await program(web, [A, B]);
      assert.deepEqual(await scene.answers('A', vip), { A: 'MASQ', B: '10.244.1.21' });
      const direct = await scene.once('A', { address: '10.244.1.21', port: 8080 });
      assert.deepEqual(direct, { kind: 'answered', by: 'A', source: '10.244.1.21' });
    });

    test('6: masqueradeAll masquerades local pods', async () => {
      await program(web, [A, B], { masqueradeAll: true });
      assert.deepEqual(await scene.answers('pod', vip), { A: 'MASQ', B: 'MASQ' });
    });

    test('7: without a detector nothing is masqueraded', async () => {
      await program(web, [A, B], { localDetector: { kind: 'none' } });
      const seen = await scene.answers('outside', { ...vip, from: '203.0.113.5' });
      assert.deepEqual(seen, { A: '203.0.113.5', B: '203.0.113.5' });
    });

    test('local traffic is detected by the name or the prefix of an interface', async () => {
      for (const localDetector of [
        { kind: 'interface', name: 'podveth0' },
        { kind: 'prefix', prefix: 'podveth' },
      ] as const) {
        await program(web, [B], { localDetector });
        assert.deepEqual(await scene.answers('pod', vip), { B: '10.244.1.5' });
        assert.deepEqual(await scene.answers('remote', vip), { B: 'MASQ' });
        assert.deepEqual(await scene.answers('node', vip), { B: 'MASQ' });
      }
    });

    test('8: undefined ports and protocols are rejected', async () => {
      await program(web, [A, B]);
      assert.equal(await scene.fate('pod', { ...vip, port: 81 }), 'rejected');
      assert.equal(await scene.fate('pod', { ...vip, transport: 'udp' }), 'rejected');
      assert.equal(await scene.fate('node', { ...vip, port: 81 }), 'rejected');
    });

    test('8: ICMP to a cluster IP is rejected', {
      skip: !hasProgram('ping', '-V') && 'needs ping',
    }, async () => {
      await program(web, [A, B]);
      const ping = ['netns', 'exec', scene.host('pod').namespace, 'ping', '-c1', '-W5', vip.address];
      assert.throws(() => run('ip', ...ping), /Destination Port Unreachable/);
    });

    test('9: IPv6 without endpoints is rejected by ICMPv6', async () => {
      await program({ clusterIP: 'fd00:96::41' }, []);
      assert.equal(await scene.fate('pod', { address: 'fd00:96::41', port: 80 }), 'rejected');
    });

    test('10: an unallocated address of a ServiceCIDR is dropped', async () => {
      await program(web, [A, B]);
      const unallocated = { address: '10.96.200.200', port: 80 };
      assert.equal(await scene.fate('pod', unallocated), 'silence');
      assert.equal(await scene.fate('node', unallocated), 'silence');
    });

    test('11: an unallocated IPv6 address is dropped, and left alone without a ServiceCIDR', async () => {
      const unallocated = { address: 'fd00:96::dead', port: 80, transport: 'udp' } as const;
      await program({ clusterIP: 'fd00:96::41' }, [A6]);
      assert.equal(await scene.fate('pod', unallocated), 'silence');
      await program({ clusterIP: 'fd00:96::41' }, [A6], { serviceCIDRs: [] });
      assert.deepEqual(await scene.answers('pod', unallocated), { outside: 'fd00:244:1::5' });
    });

    test('IPv6 connections are balanced and masqueraded, also from a pod to itself', async () => {
      await program({ clusterIP: 'fd00:96::41' }, [A6, B6]);
      const vip6 = { address: 'fd00:96::41', port: 80 };
      assert.deepEqual(await scene.answers('pod', vip6), { A: 'fd00:244:1::5', B: 'fd00:244:1::5' });
      assert.deepEqual(await scene.answers('outside', { ...vip6, from: '2001:db8:ffff::5' }), {
        A: 'MASQ',
        B: 'MASQ',
      });
      assert.deepEqual(await scene.answers('A', vip6), { A: 'MASQ', B: 'fd00:244:1::21' });
      assert.deepEqual(await scene.answers('node', vip6), { A: 'MASQ', B: 'MASQ' });
    });
  });

  describe('priority of packets that processes on the node sent', {
    skip: !hasProgram('nft', '--version') && 'needs the program nft',
  }, () => {
    const counted = (name: string): number =>
      Number(/packets (\d+)/.exec(run('nft', 'list', 'counter', 'ip', 'observer', name))?.[1]);

    before(() => {
      // 0:1 is also the number of the first chain that a table gets.
      run(
        'nft',
        `table ip observer {
          counter kept { }
          counter none { }
          chain sent { type filter hook output priority -300; meta priority set "0:1"; }
          chain leaving {
            type filter hook postrouting priority 300;
            ct direction original ct state new ip daddr 10.244.2.21 meta priority "0:1" counter name kept
            ct direction original ct state new ip daddr 10.244.2.21 meta priority none counter name none
          }
        }`,
      );
    });

    after(() => run('nft', 'delete table ip observer'));

    test('is kept in packets to other addresses, also if it equals the number of a chain', async () => {
      await program({ clusterIP: '10.96.0.41' }, [B]);
      const [kept, none] = [counted('kept'), counted('none')];
      const outcome = await scene.once('node', { address: '10.244.2.21', port: 8080 });
      assert.equal(outcome.kind, 'answered');
      assert.deepEqual([counted('kept') - kept, counted('none') - none], [1, 0]);
    });

    for (const [what, parts] of [
      ['plain', { clusterIP: '10.96.0.41' }],
      ['with affinity', { clusterIP: '10.96.0.42', name: 'sticky', affinitySeconds: 60 }],
      [
        'with policy Local',
        { clusterIP: '10.96.0.43', externalIPs: ['192.0.2.99'], externalPolicyLocal: true },
      ],
    ] as const) {
      test(`is zero in the first packet to a service, ${what}`, async () => {
        await program(parts, [B]);
        const [kept, none] = [counted('kept'), counted('none')];
        const address = 'externalIPs' in parts ? parts.externalIPs[0] : parts.clusterIP;
        assert.equal((await scene.once('node', { address, port: 80 })).kind, 'answered');
        assert.deepEqual([counted('kept') - kept, counted('none') - none], [0, 1]);
      });
    }
  });

  describe('internal policy Local', () => {
    const dns: ServicePortParts = {
      clusterIP: '10.96.0.42',
      protocol: 'UDP',
      port: 53,
      internalPolicyLocal: true,
    };
    const vip = { address: '10.96.0.42', port: 53, transport: 'udp' } as const;

    test('12: internal policy Local uses only endpoints on this node', async () => {
      await program(dns, [A, B]);
      assert.deepEqual(await scene.answers('pod', vip), { A: '10.244.1.5' });
      assert.deepEqual(await scene.answers('node', vip), { A: 'MASQ' });
    });

    test('13: internal policy Local drops when this node has no endpoint', async () => {
      await program(dns, [B]);
      assert.equal(await scene.fate('pod', vip), 'silence');
    });

    test('14: internal policy Local leaves external addresses alone', async () => {
      await program({ ...dns, nodePort: 30053 }, [B]);
      const nodePort = { address: '192.0.2.10', port: 30053, transport: 'udp', from: '203.0.113.5' } as const;
      assert.deepEqual(await scene.answers('outside', nodePort), { B: 'MASQ' });
    });
  });

  describe('node port', () => {
    const web: ServicePortParts = { clusterIP: '10.96.0.41', nodePort: 30080 };
    const local: ServicePortParts = { clusterIP: '10.96.0.41', nodePort: 30081, externalPolicyLocal: true };
    const nodePort = { address: '192.0.2.10', port: 30080 };
    const localPort = { address: '192.0.2.10', port: 30081 };
    const outside = { from: '203.0.113.5' };

    test('15, 16: policy Cluster masquerades every client of a node port', async () => {
      await program(web, [A, B]);
      assert.deepEqual(await scene.answers('outside', { ...nodePort, ...outside }), { A: 'MASQ', B: 'MASQ' });
      assert.deepEqual(await scene.answers('pod', nodePort), { A: 'MASQ', B: 'MASQ' });
      assert.deepEqual(await scene.answers('node', nodePort), { A: 'MASQ', B: 'MASQ' });
    });

    test('17: other addresses serve node ports only when all do', async () => {
      const second = { ...outside, address: '198.51.100.10', port: 30080 };
      await program(web, [A, B]);
      assert.equal(await scene.fate('outside', second), 'reset');
      await program(web, [A, B], { nodePortAddresses: ['all'] });
      assert.deepEqual(await scene.answers('outside', second), { A: 'MASQ', B: 'MASQ' });
    });

    test('19: a family without a node address matches all of them', async () => {
      const second = { address: '2001:db8:0:2::10', port: 30080, from: '2001:db8:ffff::5' };
      await program({ clusterIP: 'fd00:96::41', nodePort: 30080 }, [A6], {
        nodePortAddresses: ['192.0.2.10/32'],
      });
      assert.deepEqual(await scene.answers('outside', second), { A: 'MASQ' });
    });

    test('20: a node port without endpoints is rejected', async () => {
      await program(web, []);
      assert.equal(await scene.fate('outside', { ...nodePort, ...outside }), 'rejected');
      assert.equal(await scene.fate('node', nodePort), 'rejected');
    });

    test('21, 22: policy Local serves outside clients from this node and pods from every node, and keeps their addresses', async () => {
      await program(local, [A, B]);
      assert.deepEqual(await scene.answers('outside', { ...localPort, ...outside }), { A: '203.0.113.5' });
      assert.deepEqual(await scene.answers('pod', localPort), { A: '10.244.1.5', B: '10.244.1.5' });
    });

    test('23, 24: policy Local without an endpoint on this node drops outside clients and serves pods and the node', async () => {
      await program(local, [B]);
      assert.equal(await scene.fate('outside', { ...localPort, ...outside }), 'silence');
      assert.deepEqual(await scene.answers('pod', localPort), { B: '10.244.1.5' });
      assert.deepEqual(await scene.answers('node', localPort), { B: 'MASQ' });
    });

    test('25: policy Local treats a remote pod as an outside client unless the detector covers all pods', async () => {
      await program(local, [B]);
      assert.equal(await scene.fate('remote', localPort), 'silence');
      await program(local, [B], { localDetector: { kind: 'cidr', cidr: '10.244.0.0/16' } });
      assert.deepEqual(await scene.answers('remote', localPort), { B: '10.244.2.5' });
    });

    test('26: policy Local without a detector treats a local pod as an outside client', async () => {
      await program(local, [A, B], { localDetector: { kind: 'none' } });
      assert.deepEqual(await scene.answers('pod', localPort), { A: '10.244.1.5' });
    });

    test('46: loopback is left alone with the gate off', async () => {
      await program(web, [A]);
      assert.equal(await scene.fate('node', { address: '127.0.0.1', port: 30080 }), 'reset');
      await program(web, [A], { nodePortAddresses: ['all'] });
      assert.equal(await scene.fate('node', { address: '127.0.0.1', port: 30080 }), 'reset');
      await program({ clusterIP: 'fd00:96::41', nodePort: 30080 }, [A6], { nodePortAddresses: ['all'] });
      assert.equal(await scene.fate('node', { address: '::1', port: 30080 }), 'reset');
    });
  });

  describe('load balancer and external IP', () => {
    const outside = { from: '203.0.113.5' };
    const balanced: ServicePortParts = {
      clusterIP: '10.96.0.43',
      port: 443,
      loadBalancerVIPs: ['198.18.0.1'],
      externalPolicyLocal: true,
    };
    const draining: EndpointParts = { ...A, state: 'draining' };

    test('27: a draining endpoint here serves outside clients while a ready one elsewhere serves the cluster', async () => {
      await program(balanced, [draining, B]);
      const world = await scene.answers('outside', { ...outside, address: '198.18.0.1', port: 443 });
      assert.deepEqual(world, { A: '203.0.113.5' });
      assert.deepEqual(await scene.answers('pod', { address: '10.96.0.43', port: 443 }), { B: '10.244.1.5' });
    });

    test('28, 29: draining endpoints serve when there are no others, and without any the address rejects', async () => {
      const both = { address: '10.96.0.43', port: 443 };
      await program(balanced, [draining, { ...B, state: 'draining' }]);
      assert.deepEqual(await scene.answers('pod', both), { A: '10.244.1.5', B: '10.244.1.5' });
      await program(balanced, [
        { ...A, state: 'gone' },
        { ...B, state: 'gone' },
      ]);
      assert.equal(await scene.fate('pod', both), 'rejected');
      assert.equal(await scene.fate('outside', { ...outside, address: '198.18.0.1', port: 443 }), 'rejected');
    });

    test('37: an external IP captures its port and protocol only', async () => {
      await program({ clusterIP: '10.96.0.41', externalIPs: ['192.0.2.99'] }, [A]);
      assert.deepEqual(await scene.answers('pod', { address: '192.0.2.99', port: 80 }), { A: 'MASQ' });
      assert.notEqual(
        await scene.fate('pod', { address: '192.0.2.99', port: 80, transport: 'udp' }),
        'answered',
      );
    });
  });

  describe('source ranges', () => {
    const guarded = (sourceRanges: string[]): ServicePortParts => ({
      clusterIP: '10.96.0.44',
      loadBalancerVIPs: ['198.18.0.2'],
      nodePort: 30082,
      sourceRanges,
    });
    const vip = { address: '198.18.0.2', port: 80 };

    test('30, 31: only sources in the ranges reach the load balancer address; node ports are not guarded', async () => {
      await program(guarded(['203.0.113.0/25']), [A]);
      assert.deepEqual(await scene.answers('outside', { ...vip, from: '203.0.113.5' }), { A: 'MASQ' });
      assert.equal(await scene.fate('outside', { ...vip, from: '203.0.113.200' }), 'silence');
      const nodePort = { address: '192.0.2.10', port: 30082, from: '203.0.113.200' };
      assert.deepEqual(await scene.answers('outside', nodePort), { A: 'MASQ' });
      assert.equal(await scene.fate('pod', vip), 'silence');
    });

    test('32: a node in the source ranges may connect from the load balancer IP', async () => {
      run('ip', 'addr', 'add', '198.18.0.2/32', 'dev', 'lo');
      try {
        await program(guarded(['192.0.2.0/24']), [A]);
        assert.deepEqual(await scene.answers('node', { ...vip, from: '198.18.0.2' }), { A: 'MASQ' });
        await program(guarded(['203.0.113.0/25']), [A]);
        assert.equal(await scene.fate('node', { ...vip, from: '198.18.0.2' }), 'silence');
      } finally {
        run('ip', 'addr', 'del', '198.18.0.2/32', 'dev', 'lo');
      }
    });

    test('33: without endpoints, sources outside the ranges are dropped, not rejected', async () => {
      await program(guarded(['203.0.113.0/25']), []);
      assert.equal(await scene.fate('outside', { ...vip, from: '203.0.113.5' }), 'rejected');
      assert.equal(await scene.fate('outside', { ...vip, from: '203.0.113.200' }), 'silence');
    });

    test('34: source ranges work in IPv6', async () => {
      const v6 = {
        clusterIP: 'fd00:96::44',
        loadBalancerVIPs: ['2001:db8:1::2'],
        sourceRanges: ['2001:db8:ffff::/48'],
      };
      await program(v6, [A6]);
      const vip6 = { address: '2001:db8:1::2', port: 80 };
      assert.deepEqual(await scene.answers('outside', { ...vip6, from: '2001:db8:ffff::5' }), { A: 'MASQ' });
      assert.equal(await scene.fate('outside', { ...vip6, from: '2001:db8:eeee::1' }), 'silence');
    });

    test('ranges that come and go while connections are open affect only new connections', async () => {
      for (const [parts, endpoint, address, source] of [
        [guarded([]), A, vip.address, '203.0.113.200'],
        [
          { clusterIP: 'fd00:96::44', loadBalancerVIPs: ['2001:db8:1::2'] },
          A6,
          '2001:db8:1::2',
          '2001:db8:eeee::1',
        ],
      ] as const) {
        const service = { ...parts, sourceRanges: [] };
        await program(service, [endpoint]);
        const stranger = { address, port: 80, source };
        const open = await scene.host('outside').open(stranger);
        const range = endpoint === A ? '203.0.113.0/25' : '2001:db8:ffff::/48';
        await program({ ...service, sourceRanges: [range] }, [endpoint]);
        assert.equal(await scene.fate('outside', stranger), 'silence');
        assert.deepEqual((await open.ask())?.by, 'A');
        await program(service, [endpoint]);
        assert.equal(await scene.fate('outside', stranger), 'answered');
        await eventually('the end of the check of source ranges', async () => {
          await node.clock.advance(10_000);
          return !run('nft', 'list', 'table', endpoint === A ? 'ip' : 'ip6', 'kube-proxy').includes(
            'pre-dnat',
          );
        });
        assert.equal(await scene.fate('outside', stranger), 'answered');
        assert.deepEqual((await open.ask())?.by, 'A');
        await open.close();
      }
    });

    test('35: source ranges may overlap and repeat', async () => {
      await program(guarded(['10.0.0.0/8', '10.1.0.0/16', '10.1.0.0/16']), [A]);
      assert.deepEqual(await scene.answers('outside', { ...vip, from: '10.1.2.3' }), { A: 'MASQ' });
      assert.equal(await scene.fate('outside', { ...vip, from: '198.18.9.9' }), 'silence');
    });
  });

  describe('node ports on loopback, gate on', () => {
    const web: ServicePortParts = { clusterIP: '10.96.0.41', nodePort: 30080 };
    const dns: ServicePortParts = { ...web, name: 'dns', protocol: 'UDP', nodePort: 30053 };

    test('47: node ports at loopback are rejected and counted', async () => {
      const variant = { localhostNodePorts: true };
      await node.program([planOf(web, [A]), planOf(dns, [A])], variant);
      assert.equal(await scene.fate('node', { address: '127.0.0.1', port: 30080 }), 'rejected');
      assert.equal(
        await scene.fate('node', { address: '127.0.0.2', port: 30053, transport: 'udp' }),
        'rejected',
      );
      const counters = await node.kernel.nft.listCounters({ family: 'ip', name: 'kube-proxy' });
      const counted = (name: string) => counters.find((counter) => counter.name === name)?.packets ?? 0n;
      assert.ok(counted('loopback-rejected-tcp') >= 1n);
      assert.ok(counted('loopback-rejected-udp') >= 1n);
      assert.equal(counted('loopback-rejected-sctp'), 0n);
    });

    test('48, 49, 50: TCP and UDP are served from user space where loopback is configured', async () => {
      const backend = await nftablesMode.create({
        ...settingsOf('IPv4', { nodePortAddresses: ['primary', 'localhost'] }),
        config: defaultConfig(),
        gateEnabled: (gate) => gate === 'KubeProxyNFTablesLocalhostNodePorts',
        metrics: createProxyMetrics(new Registry({ clock: systemClock, onCollectError: assert.fail }), []),
        budget: new RepairBudget(systemClock, () => 0),
        logger: silentLogger,
        clock: systemClock,
        requestSync: () => {},
      });
      const sync = (...plans: ServicePlan[]) =>
        backend.sync({ plans: plansByKey(...plans), changed: 'all', serviceCIDRs: [], totalEndpoints: 0 });
      const loopback = { address: '127.0.0.1', port: 30080 };
      const udp = { address: '127.0.0.1', port: 30053, transport: 'udp' } as const;
      try {
        await sync(planOf(web, [A, B]), planOf(dns, [A]));
        assert.deepEqual(await scene.answers('node', loopback), { A: 'MASQ', B: 'MASQ' });
        assert.equal(await scene.fate('node', { address: '127.0.0.2', port: 30080 }), 'reset');
        assert.deepEqual(await scene.answers('node', udp), { A: 'MASQ' });
        await sync(planOf({ ...web, externalPolicyLocal: true }, [B]));
        assert.equal(await scene.fate('node', loopback), 'reset');
        assert.deepEqual(await scene.answers('node', { ...loopback, address: '192.0.2.10' }), { B: 'MASQ' });
        await sync(planOf(web, [A]));
        const open = await converse(questionOf(loopback));
        await sync();
        assert.equal(await open.ask(500), undefined);
        open.close();
        assert.equal(await scene.fate('node', loopback), 'reset');
      } finally {
        await backend.close();
      }
    });
  });

  describe('topology hints', () => {
    test('51: topology hints narrow the list of cluster endpoints, never the local one', async () => {
      const hinted = [
        { ...A, zoneHints: ['zone-b'] },
        { ...B, zoneHints: ['zone-a'] },
      ];
      await program({ clusterIP: '10.96.0.41', nodePort: 30080, externalPolicyLocal: true }, hinted);
      assert.deepEqual(await scene.answers('pod', { address: '10.96.0.41', port: 80 }), { B: '10.244.1.5' });
      const world = { address: '192.0.2.10', port: 30080, from: '203.0.113.5' };
      assert.deepEqual(await scene.answers('outside', world), { A: '203.0.113.5' });
    });
  });

  test('no connection is refused while endpoints come and go', async () => {
    for (const affinitySeconds of [0, 60]) {
      const web: ServicePortParts = { clusterIP: '10.96.0.45', affinitySeconds };
      await program(web, [A, B]);
      let isDone = false;
      const commits = (async () => {
        for (let i = 0; !isDone; i++) await program(web, i % 2 === 0 ? [B] : [A, B]);
      })();
      const fates = new Map<string, number>();
      for (let i = 0; i < 400; i++) {
        const { kind } = await scene.once('pod', { address: '10.96.0.45', port: 80 });
        fates.set(kind, (fates.get(kind) ?? 0) + 1);
      }
      isDone = true;
      await commits;
      assert.deepEqual(fates, new Map([['answered', 400]]));
    }
  });

  test('45: an established connection stays with an endpoint that left', async () => {
    const web: ServicePortParts = { clusterIP: '10.96.0.41' };
    await program(web, [A]);
    const conversation = await scene.host('pod').open({ address: '10.96.0.41', port: 80 });
    await program(web, [B]);
    assert.deepEqual(await conversation.ask(), { by: 'A', source: '10.244.1.5' });
    await program(web, []);
    assert.deepEqual(await conversation.ask(), { by: 'A', source: '10.244.1.5' });
    await conversation.close();
  });
});
