import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, createServer, type Server } from 'node:net';
import { afterEach, before, test } from 'node:test';
import { NftError } from '../../src/kernel/nft/errors.ts';
import { type Family, families } from '../../src/model/ip.ts';
import { inNamespace, sh } from '../cluster/lab/namespace.ts';
import type { EndpointParts, ServicePortParts } from '../cluster/objects.ts';
import { FaultyPlan, planOf } from '../cluster/plans.ts';
import { eventually } from '../eventually.ts';
import { nodeIPs, prepareNode, strangerIP, UserspaceNode } from './node-under-test.ts';
import { Cleanups, echoAs, fateOf, freePort, type Peer, talk, tcpPeer, UDPClient, udpPeer } from './peers.ts';

const clusterIPs: Readonly<Record<Family, string>> = { IPv4: '10.96.0.1', IPv6: 'fd00:96::1' };
const web: Peer = { ip: clusterIPs.IPv4, port: 80 };
const nodePort = 30_080;

const cleanups = new Cleanups();

async function echoPlan(name: string, parts: Partial<ServicePortParts> = {}) {
  const family: Family = parts.clusterIP?.includes(':') ? 'IPv6' : 'IPv4';
  const { ip, port } = await tcpPeer(cleanups, echoAs(name), nodeIPs[family]);
  return planOf({ name, clusterIP: clusterIPs.IPv4, ...parts }, [{ ip, port }]);
}

/** Returns the proxy port of a frontend in the table. */
function proxyPort(frontend: string, map = 'portals', family = 'ip'): number {
  const text = sh(`nft list map ${family} kube-proxy-userspace ${map} 2>&1 || true`);
  const match = new RegExp(`${frontend.replaceAll('.', '\\.')} (?:comment "[^"]*" )?: (\\S+)`).exec(text);
  return Number(match?.[1] ?? 0);
}

inNamespace(import.meta.url, () => {
  before(prepareNode);
  afterEach(() => cleanups.run());

  test('cluster IPs are captured for processes of the node, TCP and UDP, in both families', async () => {
    for (const family of families) {
      const node = await UserspaceNode.open(cleanups, { family });
      const udp = await udpPeer(cleanups, 'u', nodeIPs[family]);
      const endpoint: EndpointParts = { ip: udp.ip, port: udp.port };
      const clusterIP = clusterIPs[family];
      await node.program(
        await echoPlan('web', { clusterIP }),
        planOf({ name: 'dns', protocol: 'UDP', port: 53, clusterIP }, [endpoint]),
      );
      assert.equal(await talk({ ip: clusterIP, port: 80 }, 'hi'), 'web:hi');
      const client = await UDPClient.open(cleanups, nodeIPs[family]);
      assert.equal(String(await client.ask({ ip: clusterIP, port: 53 }, 'q')), 'u:q');
      assert.equal(String(await client.ask({ ip: clusterIP, port: 53 }, 'r')), 'u:r');
    }
  });

  test('a changed service port gets another socket and proxy port, and the old address is rejected', async () => {
    const node = await UserspaceNode.open(cleanups);
    await node.program(await echoPlan('web'));
    const before = proxyPort('10.96.0.1 . tcp . 80');
    assert.ok(before > 0);
    const open = connect({ host: web.ip, port: web.port });
    cleanups.add(() => open.destroy());
    await once(open, 'data');
    await node.program(await echoPlan('web', { port: 81 }));
    assert.equal(proxyPort('10.96.0.1 . tcp . 80'), 0);
    assert.notEqual(proxyPort('10.96.0.1 . tcp . 81'), before);
    assert.equal(await talk({ ...web, port: 81 }, 'x'), 'web:x');
    assert.equal(await fateOf(web), 'ECONNREFUSED');
    assert.equal(await fateOf({ ip: nodeIPs.IPv4, port: before }), 'ECONNREFUSED');
    open.write('still');
    assert.equal(String((await once(open, 'data'))[0]), 'still');
  });

  test('a change of endpoints or of the affinity timeout keeps the socket', async () => {
    const node = await UserspaceNode.open(cleanups);
    await node.program(await echoPlan('web', { affinitySeconds: 60 }));
    const before = proxyPort('10.96.0.1 . tcp . 80');
    await node.program(await echoPlan('web', { affinitySeconds: 90 }));
    assert.equal(proxyPort('10.96.0.1 . tcp . 80'), before);
  });

  test('external and load balancer addresses are captured, and disallowed sources are dropped', async () => {
    const node = await UserspaceNode.open(cleanups);
    const plan = await echoPlan('web', {
      externalIPs: ['198.51.100.7'],
      loadBalancerVIPs: ['198.51.100.8'],
      sourceRanges: ['203.0.113.0/24', '192.0.2.0/24'],
    });
    await node.program(plan);
    assert.equal(await talk({ ip: '198.51.100.7', port: 80 }), 'web:');
    const from = (localAddress: string, timeout: number) =>
      new Promise<string>((resolve) => {
        const socket = connect({ host: '198.51.100.8', port: 80, localAddress, timeout });
        socket.on('data', (data) => resolve(String(data)));
        for (const event of ['timeout', 'error'] as const) socket.on(event, () => resolve(event));
        cleanups.add(() => socket.destroy());
      });
    assert.equal(await from(nodeIPs.IPv4, 30_000), 'web:');
    assert.equal(await from(strangerIP, 300), 'timeout');
  });

  test('a node port is captured at every address including loopback, and no other program can bind it', async () => {
    const node = await UserspaceNode.open(cleanups);
    await node.program(await echoPlan('web', { nodePort }));
    for (const ip of [nodeIPs.IPv4, '127.0.0.1']) assert.equal(await talk({ ip, port: nodePort }), 'web:');
    await assert.rejects(tcpServerAt(nodePort), /EADDRINUSE/);
    await node.program();
    assert.equal(await fateOf({ ip: nodeIPs.IPv4, port: nodePort }), 'ECONNREFUSED');
  });

  test('node ports are captured only at the configured addresses', async () => {
    const node = await UserspaceNode.open(cleanups, { nodePortAddresses: [`${nodeIPs.IPv4}/32`] });
    await node.program(await echoPlan('web', { nodePort }));
    assert.equal(await talk({ ip: nodeIPs.IPv4, port: nodePort }), 'web:');
    assert.equal(await fateOf({ ip: '127.0.0.1', port: nodePort }), 'ECONNREFUSED');
  });

  test('the older of two services owns a node port that both claim; other addresses of the loser work', async () => {
    const node = await UserspaceNode.open(cleanups);
    const first = await echoPlan('web', { nodePort, createdAt: 1 });
    const second = await echoPlan('another', { nodePort, clusterIP: '10.96.0.2', createdAt: 2 });
    await node.program(first);
    assert.deepEqual(await node.program(first, second), {});
    assert.equal(await talk({ ip: nodeIPs.IPv4, port: nodePort }), 'web:');
    assert.equal(await talk({ ip: '10.96.0.2', port: 80 }), 'another:');
    assert.deepEqual(await node.program(second), {});
    assert.equal(await talk({ ip: nodeIPs.IPv4, port: nodePort }), 'another:');
  });

  test('a node port that moves between two ports of a service works at the end of that sync', async () => {
    const node = await UserspaceNode.open(cleanups);
    const ports = async (a: number, b: number) => [
      await echoPlan('web', { portName: 'a', nodePort: a }),
      await echoPlan('web', { portName: 'b', port: 81, nodePort: b }),
    ];
    await node.program(...(await ports(nodePort, 0)));
    for (const [a, b] of [
      [0, nodePort],
      [nodePort, 0],
    ] as const) {
      assert.deepEqual(await node.program(...(await ports(a, b))), {});
      assert.equal(await talk({ ip: nodeIPs.IPv4, port: nodePort }), 'web:');
    }
  });

  test('a node port that another program uses is not captured until it is free', async () => {
    const node = await UserspaceNode.open(cleanups);
    const squatter = await tcpServerAt(nodePort);
    const plan = await echoPlan('web', { nodePort });
    assert.match(Object.values(await node.program(plan))[0] ?? '', /cannot hold :30080\/TCP: .*EADDRINUSE/);
    assert.equal(await talk(web), 'web:');
    await new Promise((resolve) => squatter.close(resolve));
    assert.deepEqual(await node.program(plan), {});
    assert.equal(await talk({ ip: nodeIPs.IPv4, port: nodePort }), 'web:');
  });

  test('when all ports of the range are in use, a service port waits until one is free', async () => {
    const first = await freePort(nodeIPs.IPv4);
    const node = await UserspaceNode.open(cleanups, { portRange: { first, last: first + 1 } });
    const [a, b, c] = await Promise.all(
      ['a', 'b', 'c'].map((name, i) => echoPlan(name, { clusterIP: `10.96.0.${i + 1}` })),
    );
    assert.ok(a && b && c);
    const refused = await node.program(a, b, c);
    assert.match(refused['default/c/TCP'] ?? '', /no ports remaining/);
    assert.equal(await talk({ ip: '10.96.0.2', port: 80 }), 'b:');
    await node.program(a, c);
    await eventually('the port of the removed service is used', () => proxyPort('10.96.0.3 . tcp . 80') > 0);
    assert.equal(await talk({ ip: '10.96.0.3', port: 80 }), 'c:');
  });

  test('a service that changes while all ports of the range are in use keeps its port', async () => {
    const first = await freePort(nodeIPs.IPv4);
    const node = await UserspaceNode.open(cleanups, { portRange: { first, last: first } });
    await node.program(await echoPlan('web'));
    assert.deepEqual(await node.program(await echoPlan('web', { externalIPs: ['198.51.100.7'] })), {});
    for (const ip of [web.ip, '198.51.100.7']) assert.equal(await talk({ ip, port: 80 }), 'web:');
  });

  test('a service that could not be written and is then removed releases its node port', async () => {
    const node = await UserspaceNode.open(cleanups);
    const other = await echoPlan('other', { clusterIP: '10.96.0.9' });
    await node.program(other);
    const { nft } = node.kernel;
    nft.commit = async () => {
      throw new NftError('commit', [{ errno: 'ENOBUFS', text: '' }]);
    };
    await assert.rejects(node.program(other, await echoPlan('web', { nodePort })), /ENOBUFS/);
    Reflect.deleteProperty(nft, 'commit');
    const next = await echoPlan('next', { clusterIP: '10.96.0.2', nodePort });
    assert.deepEqual(await node.full(other, next), {});
    assert.equal(await talk({ ip: nodeIPs.IPv4, port: nodePort }), 'next:');
  });

  test('an SCTP port is refused, the other ports of the service work', async () => {
    const node = await UserspaceNode.open(cleanups);
    const refused = await node.program(
      await echoPlan('web'),
      await echoPlan('web', { protocol: 'SCTP', port: 5000 }),
    );
    assert.deepEqual(Object.keys(refused), ['default/web/SCTP']);
    assert.match(refused['default/web/SCTP'] ?? '', /SCTP is not supported/);
    assert.equal(await talk(web), 'web:');
  });

  test('a service port that cannot be prepared is refused, and the others work and lose no socket', async () => {
    const node = await UserspaceNode.open(cleanups);
    const faulty = FaultyPlan.of({ name: 'faulty', clusterIP: '10.96.0.9' });
    const unnameable = await echoPlan('unnameable', { clusterIP: '10.96.0.8', portName: 'a\0b' });
    const works = await echoPlan('web');
    await node.program(works);
    const port = proxyPort('10.96.0.1 . tcp . 80');
    assert.deepEqual(await node.program(works, faulty, unnameable), {
      'default/faulty/TCP': 'cannot be prepared: no decision can be made',
      'default/unnameable:a\0b/TCP':
        'cannot be prepared: comment "default/unnameable:a\\u0000b" has a NUL character',
    });
    assert.equal(proxyPort('10.96.0.1 . tcp . 80'), port);
    assert.equal(await talk(web), 'web:');
    assert.equal(node.backend.condition.retry, undefined);
  });

  test('connections to a service without endpoints are rejected, and served when it has endpoints again', async () => {
    const node = await UserspaceNode.open(cleanups);
    await node.program(planOf({ clusterIP: clusterIPs.IPv4 }, []));
    assert.equal(await fateOf(web), 'ECONNREFUSED');
    await node.program(await echoPlan('web'));
    assert.equal(await talk(web), 'web:');
  });

  test('flushed rules are restored, and added rules are removed', async () => {
    const node = await UserspaceNode.open(cleanups);
    await node.program(await echoPlan('web'));
    sh('nft flush ruleset');
    await eventually('the table is back', () => proxyPort('10.96.0.1 . tcp . 80') > 0);
    assert.equal(await talk(web), 'web:');
    sh('nft insert rule ip kube-proxy-userspace dispatch drop');
    await eventually(
      'the rule is gone',
      () => !/\bdrop\b/.test(sh('nft list chain ip kube-proxy-userspace dispatch')),
    );
    assert.equal(await talk(web), 'web:');
    assert.ok(node.repairs >= 2);
  });

  test('a direct connection to a proxy port is refused', async () => {
    const node = await UserspaceNode.open(cleanups);
    await node.program(await echoPlan('web'));
    const port = proxyPort('10.96.0.1 . tcp . 80');
    assert.equal(await fateOf({ ip: nodeIPs.IPv4, port }), 'ECONNREFUSED');
  });

  test('a service that is created and deleted before a sync leaves nothing', async () => {
    const node = await UserspaceNode.open(cleanups);
    await node.program(await echoPlan('web', { name: 'other', clusterIP: '10.96.0.9' }));
    const elements = sh('nft list table ip kube-proxy-userspace');
    await node.program(
      await echoPlan('web'),
      await echoPlan('web', { name: 'other', clusterIP: '10.96.0.9' }),
    );
    await node.program(await echoPlan('web', { name: 'other', clusterIP: '10.96.0.9' }));
    assert.equal(sh('nft list table ip kube-proxy-userspace'), elements);
  });
});

function tcpServerAt(port: number): Promise<Server> {
  return new Promise((resolve, reject) => {
    const server = createServer().listen(port, '0.0.0.0', () => resolve(server));
    server.on('error', reject);
    cleanups.add(() => server.close());
  });
}
