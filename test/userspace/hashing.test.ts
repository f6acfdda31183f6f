/** Endpoints that are chosen by a hash in userspace mode: the same ones as in nftables mode. */
import assert from 'node:assert/strict';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { connect } from 'node:net';
import { afterEach, before, test } from 'node:test';
import { type Family, families, joinHostPort } from '../../src/model/ip.ts';
import type { Balance } from '../../src/model/service-port.ts';
import { chosenByTable } from '../cluster/chosen-by-table.ts';
import { inNamespace } from '../cluster/lab/namespace.ts';
import { nextSourcePort } from '../cluster/lab/source-port.ts';
import type { ServicePortParts } from '../cluster/objects.ts';
import { planOf } from '../cluster/plans.ts';
import { freePort } from '../free-port.ts';
import { nodeIPs, prepareNode, UserspaceNode } from './node-under-test.ts';
import { Cleanups, echoAs, type Peer, tcpPeer, udpPeer } from './peers.ts';

/** As many connections as this, by chance alone, agree with the table once in 10^27 runs. */
const connections = 40;
const names = ['a', 'b', 'c', 'd', 'e'];
const clusterIPs: Readonly<Record<Family, string>> = { IPv4: '10.96.0.1', IPv6: 'fd00:96::1' };

const cleanups = new Cleanups();

type Endpoints = Readonly<Record<string, Peer>>;

function idsOf(endpoints: Endpoints): Record<string, string> {
  return Object.fromEntries(
    Object.entries(endpoints).map(([name, { ip, port }]) => [name, joinHostPort(ip, port)]),
  );
}

async function servers(ip: string): Promise<Endpoints> {
  const peers = names.map(async (name) => [name, await tcpPeer(cleanups, echoAs(name), ip)] as const);
  return Object.fromEntries(await Promise.all(peers));
}

function program(node: UserspaceNode, endpoints: Endpoints, parts: ServicePortParts) {
  const list = Object.values(endpoints).map(({ ip, port }) => ({ ip, port }));
  return node.program(planOf({ balance: 'hash', ...parts }, list));
}

/** The name of the server that answers a connection from this port of the node. */
async function choice(family: Family, sourcePort: number): Promise<string> {
  const at = { host: clusterIPs[family], port: 80, localAddress: nodeIPs[family], localPort: sourcePort };
  const socket = connect(at);
  cleanups.add(() => socket.destroy());
  const [greeting] = (await once(socket, 'data')) as [Buffer];
  // A reset leaves no connection behind that keeps the port.
  socket.resetAndDestroy();
  return String(greeting).replace(':', '');
}

inNamespace(import.meta.url, () => {
  before(prepareNode);
  afterEach(() => cleanups.run());

  for (const family of families) {
    const clusterIP = clusterIPs[family];
    const client = nodeIPs[family];

    test(`${family}: connections go where the table of all nodes says`, async () => {
      const node = await UserspaceNode.open(cleanups, { family });
      const endpoints = await servers(client);
      for (const balance of ['hash', 'hash-client'] as const satisfies readonly Balance[]) {
        await program(node, endpoints, { clusterIP, balance });
        for (let i = 0; i < connections; i++) {
          const port = nextSourcePort();
          const expected = chosenByTable(idsOf(endpoints), client, balance === 'hash' ? port : undefined);
          assert.equal(await choice(family, port), expected, `${balance}, port ${port}`);
        }
      }
    });

    test(`${family}: an endpoint that leaves moves its own clients, and few others`, async () => {
      const node = await UserspaceNode.open(cleanups, { family });
      const endpoints = await servers(client);
      const { c: _, ...others } = endpoints;
      const ports = Array.from({ length: connections }, nextSourcePort);
      await program(node, endpoints, { clusterIP });
      const old = new Map<number, string>();
      for (const port of ports) old.set(port, await choice(family, port));
      await program(node, others, { clusterIP });
      let moved = 0;
      for (const port of ports) {
        const now = await choice(family, port);
        assert.equal(now, chosenByTable(idsOf(others), client, port), `port ${port}`);
        if (old.get(port) !== 'c' && now !== old.get(port)) moved++;
      }
      assert.ok(moved <= connections / 4, `${moved} clients of endpoints that stayed were moved`);
    });
  }

  test('clients of an endpoint that does not answer go to another one, always to the same', async () => {
    const node = await UserspaceNode.open(cleanups);
    const peers = await servers(nodeIPs.IPv4);
    const endpoints = { ...peers, c: { ip: nodeIPs.IPv4, port: await freePort() } };
    await program(node, endpoints, { clusterIP: clusterIPs.IPv4 });
    const ids = idsOf(endpoints);
    for (let i = 0; i < connections; i++) {
      const port = nextSourcePort();
      const [first, second] = [await choice('IPv4', port), await choice('IPv4', port)];
      const expected = chosenByTable(ids, nodeIPs.IPv4, port);
      assert.deepEqual([first, second], expected === 'c' ? [first, first] : [expected, expected]);
    }
  });

  test('datagrams are hashed as well', async () => {
    const node = await UserspaceNode.open(cleanups);
    const ip = nodeIPs.IPv4;
    const peers = names.map(async (name) => [name, await udpPeer(cleanups, name, ip)] as const);
    const endpoints = Object.fromEntries(await Promise.all(peers));
    await program(node, endpoints, { clusterIP: clusterIPs.IPv4, protocol: 'UDP', port: 53 });
    for (let i = 0; i < connections; i++) {
      const port = nextSourcePort();
      const socket = createSocket('udp4').bind(port, ip);
      cleanups.add(() => socket.close());
      const answer = once(socket, 'message', { signal: AbortSignal.timeout(5_000) });
      socket.send('q', 53, clusterIPs.IPv4);
      assert.equal(String((await answer)[0]), `${chosenByTable(idsOf(endpoints), ip, port)}:q`);
    }
  });

  test('a change of the annotation keeps open connections, and decides new ones', async () => {
    const node = await UserspaceNode.open(cleanups);
    const endpoints = await servers(nodeIPs.IPv4);
    const clusterIP = clusterIPs.IPv4;
    await program(node, endpoints, { clusterIP, balance: 'default' });
    const open = connect({ host: clusterIP, port: 80 });
    cleanups.add(() => open.destroy());
    await once(open, 'data');
    await program(node, endpoints, { clusterIP, balance: 'hash' });
    const port = nextSourcePort();
    assert.equal(await choice('IPv4', port), chosenByTable(idsOf(endpoints), nodeIPs.IPv4, port));
    open.write('still');
    assert.equal(String((await once(open, 'data'))[0]), 'still');
  });
});
