/** Endpoints that are chosen by a hash, on a real kernel: each packet goes where the table of the plan says. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { stableTable } from '../../src/model/stable-table.ts';
import { chosenByTable } from '../cluster/chosen-by-table.ts';
import { enterNamespace, labUnavailable, run } from '../cluster/lab/namespace.ts';
import { nextSourcePort } from '../cluster/lab/source-port.ts';
import type { EndpointParts, ServicePortParts } from '../cluster/objects.ts';
import { planOf } from '../cluster/plans.ts';
import { NodeUnderTest } from './harness.ts';
import { A, A6, B, B6, Scene } from './scene.ts';

const skip = labUnavailable() ?? false;
const namespace = skip ? '' : enterNamespace(import.meta.url);

/** As many connections as this, by chance alone, agree with the table once in 16 million runs. */
const connections = 24;

const ids = { A: '10.244.1.21:8080', B: '10.244.2.21:8080' };
const ids6 = { A: '[fd00:244:1::21]:8080', B: '[fd00:244:2::21]:8080' };

describe('nftables hashing', { skip }, () => {
  let scene: Scene;
  let node: NodeUnderTest;
  const web: ServicePortParts = { clusterIP: '10.96.2.1', balance: 'hash', nodePort: 30201 };

  before(async () => {
    scene = await Scene.build(namespace);
    node = await NodeUnderTest.open();
  });

  after(() => {
    node.close();
    scene.close();
  });

  const program = (parts: ServicePortParts, endpoints: readonly EndpointParts[]) =>
    node.program([planOf(parts, endpoints)]);

  /** Who answers one connection from this address and port. */
  async function choice(who: string, address: string, port: number, from: string, sourcePort: number) {
    const outcome = await scene.once(who, { address, port, from, sourcePort });
    return outcome.kind === 'answered' ? outcome.by : outcome.kind;
  }

  for (const [family, names, parts, endpoints, client] of [
    ['IPv4', ids, web, [A, B], '10.244.1.5'],
    ['IPv6', ids6, { ...web, clusterIP: 'fd00:96::201' }, [A6, B6], 'fd00:244:1::5'],
  ] as const) {
    test(`${family}: address and port of a client decide, as on every node`, async () => {
      await program(parts, endpoints);
      for (let i = 0; i < connections; i++) {
        const port = nextSourcePort();
        const by = await choice('pod', parts.clusterIP, 80, client, port);
        assert.equal(by, chosenByTable(names, client, port), `port ${port}`);
      }
    });

    test(`${family}: the address alone decides with hash-client`, async () => {
      await program({ ...parts, balance: 'hash-client' }, endpoints);
      const expected = chosenByTable(names, client);
      for (let i = 0; i < 5; i++) {
        assert.equal(await choice('pod', parts.clusterIP, 80, client, nextSourcePort()), expected);
      }
    });
  }

  test('datagrams are hashed as well', async () => {
    await program({ ...web, protocol: 'UDP' }, [A, B]);
    for (let i = 0; i < connections; i++) {
      const sourcePort = nextSourcePort();
      const outcome = await scene.once('pod', {
        address: web.clusterIP,
        port: 80,
        from: '10.244.1.5',
        sourcePort,
        transport: 'udp',
      });
      assert.equal(outcome.kind === 'answered' && outcome.by, chosenByTable(ids, '10.244.1.5', sourcePort));
    }
  });

  test('a node port has the table of its service; under policy Local only that of endpoints here', async () => {
    await program(web, [A, B]);
    const from = '203.0.113.5';
    for (let i = 0; i < connections; i++) {
      const port = nextSourcePort();
      assert.equal(await choice('outside', '192.0.2.10', 30201, from, port), chosenByTable(ids, from, port));
    }
    await program({ ...web, externalPolicyLocal: true }, [A, B]);
    for (let i = 0; i < connections; i++) {
      assert.equal(await choice('outside', '192.0.2.10', 30201, from, nextSourcePort()), 'A');
    }
    const port = nextSourcePort();
    assert.equal(
      await choice('pod', '192.0.2.10', 30201, '10.244.1.5', port),
      chosenByTable(ids, '10.244.1.5', port),
    );
  });

  test('client affinity remembers what the hash chose first', async () => {
    await program({ ...web, affinitySeconds: 600 }, [A, B]);
    const port = nextSourcePort();
    const first = await choice('pod', web.clusterIP, 80, '10.244.1.5', port);
    assert.equal(first, chosenByTable(ids, '10.244.1.5', port));
    for (let i = 0; i < connections; i++) {
      assert.equal(await choice('pod', web.clusterIP, 80, '10.244.1.5', nextSourcePort()), first);
    }
  });

  test('an endpoint that leaves costs only the slots that change hands', async () => {
    const three = [A, B, { ip: '10.244.2.22' }];
    await program(web, three);
    await program(web, [A, B]);
    const [before, after] = [
      ['10.244.1.21:8080', '10.244.2.21:8080', '10.244.2.22:8080'],
      Object.values(ids),
    ];
    const [old, now] = [stableTable(before), stableTable(after)];
    const moved = old.filter((index, slot) => before[index] !== after[now[slot] ?? -1]).length;
    // An element that changes is deleted and added; the endpoint itself was a member, and nothing else.
    assert.equal(node.elementOperations, 2 * moved + 1);
  });

  test('a restart finds the table as it is', async () => {
    await program(web, [A, B]);
    node.restart();
    await program(web, [A, B]);
    assert.equal(node.elementOperations, 0);
  });

  test('hashing can be switched on and off', async () => {
    for (const balance of ['default', 'hash', 'hash-client', 'default'] as const) {
      await program({ ...web, balance }, [A, B]);
      assert.equal(await scene.fate('pod', { address: web.clusterIP, port: 80 }), 'answered');
    }
  });

  test('nft lists the rules', async () => {
    await program(web, [A, B]);
    const listed = run('nft', 'list', 'chain', 'ip', 'kube-proxy', 'cluster-hash-509');
    assert.match(listed, /meta priority \. jhash ip saddr \. th sport mod 509 seed 0x1 map @sticky-slots/);
  });
});
