import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { afterEach, before, test } from 'node:test';
import type { Fate, Packet } from '../../src/backends/inspection.ts';
import { families, joinHostPort } from '../../src/model/ip.ts';
import { inNamespace, sh } from '../cluster/lab/namespace.ts';
import type { ServicePortParts } from '../cluster/objects.ts';
import { planOf } from '../cluster/plans.ts';
import { nodeIPs, prepareNode, strangerIP, UserspaceNode } from './node-under-test.ts';
import { Cleanups, echoAs, talk, tcpPeer } from './peers.ts';

const cleanups = new Cleanups();
const nodePort = 30_080;
const clusterIP = '10.96.0.1';

/** A packet, by default from this node. */
function packet(destination: string, port: number, parts: Partial<Packet> = {}): Packet {
  const family = destination.includes(':') ? 'IPv6' : 'IPv4';
  const source = nodeIPs[family];
  return { family, protocol: 'TCP', source, destination, port, origin: 'node', ...parts };
}

async function peer(name: string, ip = nodeIPs.IPv4) {
  const { port } = await tcpPeer(cleanups, echoAs(name), ip);
  return { ip, port };
}

/** Returns the outcome of a connection from this node: an answer, refused, or none within a short time. */
function reality(
  host: string,
  port: number,
  localAddress: string,
  expected: Fate['action'],
): Promise<Fate['action']> {
  return new Promise((resolve) => {
    const timeout = expected === 'drop' ? 500 : 30_000;
    const socket = connect({ host, port, localAddress, timeout });
    cleanups.add(() => socket.destroy());
    socket.on('data', () => resolve('forward'));
    socket.on('timeout', () => resolve('drop'));
    socket.on('error', () => resolve('reject'));
  });
}

inNamespace(import.meta.url, () => {
  before(prepareNode);
  afterEach(() => cleanups.run());

  test('after a sync of any services there is no difference, in both families', async () => {
    for (const family of families) {
      const node = await UserspaceNode.open(cleanups, { family });
      const to = [{ ...(await peer('a', nodeIPs[family])), local: true }];
      const ip =
        family === 'IPv4' ? (last: number) => `10.96.0.${last}` : (last: number) => `fd00:96::${last}`;
      const vip = family === 'IPv4' ? '198.51.100.8' : '2001:db8:1::8';
      const ranges = family === 'IPv4' ? ['203.0.113.0/24', '192.0.2.0/24'] : ['2001:db8:2::/48'];
      const plans = [
        planOf({ clusterIP: ip(1), nodePort, affinitySeconds: 60 }, to),
        planOf({ name: 'empty', clusterIP: ip(2) }),
        planOf({ name: 'balanced', clusterIP: ip(3), loadBalancerVIPs: [vip], sourceRanges: ranges }, to),
        planOf(
          { name: 'here', clusterIP: ip(4), externalIPs: [vip], port: 81, externalPolicyLocal: true },
          to,
        ),
        planOf({ name: 'dns', clusterIP: ip(5), protocol: 'UDP', port: 53 }, to),
        planOf({ name: 'sctp', clusterIP: ip(6), protocol: 'SCTP', port: 99 }, to),
        planOf({ name: 'late', clusterIP: ip(7), nodePort }, to),
      ];
      await node.program(...plans);
      assert.deepEqual(await node.differences(...plans), []);
    }
  });

  test('a comparison finds missing, different and surplus objects, each with its service', async () => {
    const node = await UserspaceNode.open(cleanups);
    const to = await peer('a');
    const plan = planOf({ clusterIP }, [to]);
    await node.program(plan);
    const [, port] = /tcp \. 80 .*: (\d+)/.exec(sh('nft list map ip kube-proxy-userspace portals')) ?? [];
    const gone = planOf({ clusterIP }, []);
    const wanted = 'goto reject-packet comment "default/web"';
    assert.deepEqual(await node.differences(gone), [
      `default/web/TCP listener default/web/TCP IPv4 #0: 192.0.2.10:${port}/TCP -> nothing`,
      `default/web/TCP element portals 10.96.0.1 . tcp . 80: ${port} comment "default/web" -> nothing`,
      `default/web/TCP element proxy-ports tcp . ${port}: present -> nothing`,
      `default/web/TCP element refused 10.96.0.1 . tcp . 80: nothing -> ${wanted}`,
    ]);
    const outlet = 'cluster, source kept for pods at the cluster IP';
    const other = { ip: '10.244.1.9', port: 8080 };
    const both = planOf({ clusterIP }, [to, other]);
    assert.deepEqual(await node.differences(both), [
      `default/web/TCP endpoints default/web/TCP ${outlet}: ${joinHostPort(to.ip, to.port)} (round-robin) -> ` +
        `10.244.1.9:8080 ${joinHostPort(to.ip, to.port)} (round-robin)`,
    ]);
    const second = planOf({ name: 'second', clusterIP: '10.96.0.2' }, [to]);
    assert.deepEqual(await node.differences(plan, second), [
      `default/second/TCP listener default/second/TCP ${outlet}: nothing -> 192.0.2.10:any/TCP`,
      'default/second/TCP element portals 10.96.0.2 . tcp . 80: nothing -> ' +
        'the port of a socket to be opened comment "default/second"',
      'default/second/TCP element cluster-addresses 10.96.0.2: nothing -> present',
    ]);
  });

  test('changes by another program are found, and packets are followed through the changed table', async () => {
    const node = await UserspaceNode.open(cleanups);
    const plan = planOf({ clusterIP }, [await peer('a')]);
    await node.program(plan);
    const before = await node.inspection.ask(packet(clusterIP, 80));
    assert.equal(before.fate.action, 'forward');
    node.mayRepair = false;
    sh('nft insert rule ip kube-proxy-userspace dispatch tcp dport 80 drop');
    const [answer, differences] = await Promise.all([
      node.inspection.ask(packet(clusterIP, 80)),
      node.differences(plan),
    ]);
    assert.deepEqual(answer.fate, { action: 'drop' });
    assert.deepEqual(answer.evidence, ['chain dispatch: drop']);
    assert.match(differences.join('\n'), /^- rules dispatch: \[ .*\[ drop \]/);
  });

  test('an answer has the element, the translation, the listener, the next endpoint and the bound one', async () => {
    const node = await UserspaceNode.open(cleanups);
    const peers = [await peer('a'), await peer('b')];
    await node.program(planOf({ clusterIP, affinitySeconds: 60 }, peers));
    assert.match(await talk({ ip: clusterIP, port: 80 }), /^[ab]:$/);
    const { fate, evidence } = await node.inspection.ask(packet(clusterIP, 80));
    const endpoints = peers.map(({ ip, port }) => joinHostPort(ip, port)).toSorted();
    const [element = '', dnat = '', port = '', listener = '', next = '', then = '', bound = ''] = evidence;
    assert.match(element, /^portals 10\.96\.0\.1 \. tcp \. 80 : \d+$/);
    assert.equal(dnat, 'chain dispatch: dnat');
    assert.match(port, /^proxy-ports tcp \. \d+$/);
    assert.match(
      listener,
      /^listener \S+:\d+\/TCP of default\/web\/TCP IPv4: round-robin, affinity 60 s, keeps the address of 10\.244\.1\.0\/24 at 10\.96\.0\.1$/,
    );
    assert.deepEqual([next, then].map((line) => line.split(' ')[1]?.slice(0, -1)).toSorted(), endpoints);
    const [, last = ''] = /^then (\S+),/.exec(then) ?? [];
    assert.equal(bound, `192.0.2.10 is bound to ${last}`);
    const targets = (all: string[], probability: number) => ({
      action: 'forward',
      affinitySeconds: 60,
      targets: all.map((endpoint) => ({ endpoint, probability, masquerade: true })),
    });
    assert.deepEqual(fate, targets([last], 1));
    const stranger = await node.inspection.ask(packet(clusterIP, 80, { source: strangerIP }));
    assert.deepEqual(stranger.fate, targets(endpoints, 0.5));
    assert.equal(stranger.evidence.length, evidence.length - 1);
  });

  test('answers agree with what happens to connections from this node', async () => {
    const node = await UserspaceNode.open(cleanups, { nodePortAddresses: [`${nodeIPs.IPv4}/32`] });
    const here = { ...(await peer('here')), local: true };
    const elsewhere = { ip: '10.244.9.9', port: 1 };
    const parts: Record<string, ServicePortParts> = {
      web: { clusterIP, nodePort },
      guarded: {
        clusterIP: '10.96.0.2',
        loadBalancerVIPs: ['198.51.100.8'],
        sourceRanges: ['192.0.2.0/24'],
      },
      empty: { clusterIP: '10.96.0.3', nodePort: nodePort + 1 },
      local: { clusterIP: '10.96.0.4', internalPolicyLocal: true, externalIPs: ['198.51.100.9'] },
    };
    const endpoints = { web: [here], guarded: [here], empty: [], local: [elsewhere] };
    await node.program(
      ...Object.entries(parts).map(([name, each]) =>
        planOf({ ...each, name }, endpoints[name as keyof typeof endpoints]),
      ),
    );
    const [, proxyPort = 0] =
      /10\.96\.0\.1 \. tcp \. 80 .*?: (\d+)/.exec(sh('nft list map ip kube-proxy-userspace portals')) ?? [];
    const cases: [string, number, Fate['action']][] = [
      [clusterIP, 80, 'forward'],
      [clusterIP, 81, 'reject'],
      [nodeIPs.IPv4, nodePort, 'forward'],
      [nodeIPs.IPv4, nodePort + 1, 'reject'],
      [nodeIPs.IPv4, Number(proxyPort), 'reject'],
      ['198.51.100.8', 80, 'forward'],
      ['10.96.0.3', 80, 'reject'],
      ['10.96.0.4', 80, 'drop'],
    ];
    for (const [destination, port, expected] of cases) {
      const { fate } = await node.inspection.ask(packet(destination, port));
      const name = joinHostPort(destination, port);
      assert.equal(fate.action, expected, name);
      assert.equal(await reality(destination, port, nodeIPs.IPv4, expected), expected, name);
    }
    const guarded = packet('198.51.100.8', 80, { source: strangerIP });
    const { fate, evidence } = await node.inspection.ask(guarded);
    assert.equal(fate.action, 'drop');
    assert.match(evidence.join('\n'), /missing: sources 198\.51\.100\.8 \. tcp \. 80 \. 203\.0\.114\.10/);
    assert.equal(await reality('198.51.100.8', 80, strangerIP, 'drop'), 'drop');
    for (const [ip, port] of [
      [strangerIP, nodePort],
      ['10.97.0.1', 80],
    ] as const) {
      assert.deepEqual((await node.inspection.ask(packet(ip, port))).fate, { action: 'pass' });
    }
  });

  test('policy Local applies to packets from elsewhere, and pods of this node are recognised by their network', async () => {
    const node = await UserspaceNode.open(cleanups, {
      localDetector: { kind: 'cidr', cidr: '10.244.1.0/24' },
    });
    const [here, elsewhere] = [{ ip: '10.244.1.5', local: true }, { ip: '10.244.2.5' }];
    await node.program(
      planOf({ clusterIP, nodePort, externalPolicyLocal: true, externalIPs: ['198.51.100.7'] }, [
        here,
        elsewhere,
      ]),
    );
    const targets = async (source: string, destination: string, port: number) => {
      const origin = { interface: 'out' };
      const { fate } = await node.inspection.ask(packet(destination, port, { source, origin }));
      return fate.action === 'forward' ? fate.targets.map(({ endpoint }) => endpoint) : fate.action;
    };
    const all = ['10.244.1.5:8080', '10.244.2.5:8080'];
    assert.deepEqual(await targets('203.0.113.9', '198.51.100.7', 80), ['10.244.1.5:8080']);
    assert.deepEqual(await targets('10.244.1.7', '198.51.100.7', 80), all);
    assert.deepEqual(await targets('203.0.113.9', nodeIPs.IPv4, nodePort), ['10.244.1.5:8080']);
    assert.deepEqual(await targets('203.0.113.9', clusterIP, 80), all);
    assert.deepEqual(await targets('203.0.113.9', clusterIP, 8080), 'reject');
    assert.deepEqual(await targets('203.0.113.9', '192.0.2.99', 80), 'pass');
  });
});
