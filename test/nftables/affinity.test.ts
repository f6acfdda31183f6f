/** Client affinity on a real kernel, with timeouts of seconds. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { enterNamespace, labUnavailable } from '../cluster/lab/namespace.ts';
import type { EndpointParts, ServicePortParts } from '../cluster/objects.ts';
import { planOf } from '../cluster/plans.ts';
import { NodeUnderTest } from './harness.ts';
import { A, A6, B, B6, Scene } from './scene.ts';

const skip = labUnavailable() ?? false;
const namespace = skip ? '' : enterNamespace(import.meta.url);

describe('nftables client affinity', { skip }, () => {
  let scene: Scene;
  let node: NodeUnderTest;
  let services = 0;

  before(async () => {
    scene = await Scene.build(namespace);
    node = await NodeUnderTest.open();
  });

  after(() => {
    node.close();
    scene.close();
  });

  /** A new service for each test, without affinity records of an earlier one. */
  function freshService(parts: Partial<ServicePortParts> = {}): ServicePortParts & { nodePort: number } {
    services++;
    return {
      clusterIP: `10.96.1.${services}`,
      name: `sticky-${services}`,
      nodePort: 30100 + services,
      affinitySeconds: 600,
      ...parts,
    };
  }

  const program = (parts: ServicePortParts, endpoints: readonly EndpointParts[]) =>
    node.program([planOf(parts, endpoints)]);

  /** The endpoint that answers a client; fails when several connections reach different ones. */
  async function choice(who: string, address: string, port = 80, from?: string): Promise<string> {
    const seen = await scene.answers(who, from === undefined ? { address, port } : { address, port, from });
    const [by, ...others] = Object.keys(seen);
    assert.deepEqual(others, [], `${who} was sent to several endpoints`);
    return by ?? '';
  }

  test('38: a client stays with its endpoint, and clients are spread', async () => {
    const service = freshService();
    await program(service, [A, B]);
    const first = await choice('pod', service.clusterIP);
    assert.equal(await choice('pod', service.clusterIP), first);
    const chosen = new Set<string>();
    for (let attempt = 0; attempt < 24 && chosen.size < 2; attempt++) {
      const other = freshService();
      await program(other, [A, B]);
      chosen.add(await choice('pod', other.clusterIP));
    }
    assert.deepEqual([...chosen].sort(), ['A', 'B']);
  });

  test('38: every new connection restarts the timer', async () => {
    const service = freshService({ affinitySeconds: 6 });
    await program(service, [A, B]);
    const first = await choice('pod', service.clusterIP);
    // Pauses are much shorter than the timer, so that it does not expire when the machine stalls for a moment.
    const end = performance.now() + 8_000;
    while (performance.now() < end) {
      await sleep(1_000);
      assert.equal(await choice('pod', service.clusterIP), first);
    }
  });

  test('39: an open connection does not keep the record alive', async () => {
    const service = freshService({ affinitySeconds: 1 });
    await program(service, [A, B]);
    const conversation = await scene.host('pod').open({ address: service.clusterIP, port: 80 });
    const chosen = new Set<string>();
    for (let i = 0; i < 24 && chosen.size < 2; i++) {
      await sleep(1100);
      await conversation.ask();
      const outcome = await scene.once('pod', { address: service.clusterIP, port: 80 });
      if (outcome.kind === 'answered') chosen.add(outcome.by);
    }
    await conversation.close();
    assert.deepEqual([...chosen].sort(), ['A', 'B']);
  });

  test('40: a record ends with its endpoint and does not come back with it', async () => {
    const service = freshService();
    const both = { A, B };
    await program(service, [A, B]);
    const first = (await choice('pod', service.clusterIP)) as 'A' | 'B';
    const second = first === 'A' ? 'B' : 'A';
    await program(service, [both[second]]);
    assert.equal(await choice('pod', service.clusterIP), second);
    await program(service, [A, B]);
    assert.equal(await choice('pod', service.clusterIP), second);
  });

  test('40: an endpoint that returns starts without records', async () => {
    const chosen = new Set<string>();
    for (let i = 0; i < 24 && chosen.size < 2; i++) {
      const service = freshService();
      await program(service, [A]);
      assert.equal(await choice('pod', service.clusterIP), 'A');
      await program(service, []);
      await program(service, [A, B]);
      chosen.add(await choice('pod', service.clusterIP));
    }
    assert.deepEqual([...chosen].sort(), ['A', 'B']);
  });

  test('41: all frontends of a service port share records', async () => {
    const service = freshService({ externalIPs: ['192.0.2.99'] });
    await program(service, [A, B]);
    const first = await choice('pod', service.clusterIP);
    assert.equal(await choice('pod', '192.0.2.10', service.nodePort), first);
    assert.equal(await choice('pod', '192.0.2.99'), first);
  });

  test('a record counts only while its endpoint is in the list that serves', async () => {
    const service = freshService({ externalPolicyLocal: true });
    await program(service, [B]);
    assert.equal(await choice('outside', service.clusterIP, 80, '203.0.113.5'), 'B');
    await program(service, [A, B]);
    // For outside clients only A serves the node port; the record of the cluster IP for B does not count, but stays.
    assert.equal(await choice('outside', '192.0.2.10', service.nodePort, '203.0.113.5'), 'A');
    assert.equal(await choice('outside', service.clusterIP, 80, '203.0.113.5'), 'B');
    assert.equal(await choice('outside', '192.0.2.10', service.nodePort, '203.0.113.5'), 'A');
  });

  test('a record of one list serves the other', async () => {
    const here: EndpointParts[] = [A, { ip: '10.244.1.99', local: true, port: 9 }];
    for (let i = 0; i < 4; i++) {
      const service = freshService({ externalPolicyLocal: true });
      await program(service, [A]);
      assert.equal(await choice('outside', service.clusterIP, 80, '203.0.113.5'), 'A');
      await program(service, here);
      assert.equal(await choice('outside', '192.0.2.10', service.nodePort, '203.0.113.5'), 'A');
    }
  });

  test('42: records survive a restart and full syncs', async () => {
    const service = freshService();
    await program(service, [A, B]);
    const first = await choice('pod', service.clusterIP);
    for (let i = 0; i < 3; i++) {
      node.restart();
      await program(service, [A, B]);
      assert.equal(await choice('pod', service.clusterIP), first);
    }
  });

  test('turning affinity off and on again removes all records', async () => {
    const chosen = new Set<string>();
    for (let i = 0; i < 24 && chosen.size < 2; i++) {
      const service = freshService();
      await program(service, [A]);
      await choice('pod', service.clusterIP);
      await program({ ...service, affinitySeconds: 0 }, [A]);
      await program(service, [A, B]);
      chosen.add(await choice('pod', service.clusterIP));
    }
    assert.deepEqual([...chosen].sort(), ['A', 'B']);
  });

  test('IPv6 clients stay with their endpoint', async () => {
    const service = freshService({ clusterIP: 'fd00:96::77' });
    await program(service, [A6, B6]);
    const first = await choice('pod', service.clusterIP);
    assert.equal(await choice('pod', '2001:db8:0:1::10', service.nodePort), first);
    await program(service, [first === 'A' ? B6 : A6]);
    assert.equal(await choice('pod', service.clusterIP), first === 'A' ? 'B' : 'A');
  });
});
