import assert from 'node:assert/strict';
import type { Scene } from '../scene.ts';
import {
  type Answers,
  type ExpectedPacket,
  type Fate,
  IGNORE,
  type Packet,
  type ServiceSpec,
  type Story,
  scripted,
  type Target,
  withoutServiceNetwork,
} from '../story.ts';

const dns: ServiceSpec = { protocols: ['UDP'], port: 53, endpoints: ['A'] };
const dnsEverywhere: ServiceSpec = { ...dns, nodePort: true, external: true, loadBalancer: true };

/** How often a story checks that something does not change. */
const ASSURANCES = 5;

/** Consecutive clusters give services the same addresses, so only source ports distinguish their flows. */
let lastPort = 20_000;

/** A packet that can be repeated: all its datagrams belong to the same flow. */
function flowTo(to: Target, from: Packet['from'] = 'pod'): Packet {
  return { from, to, sourcePort: ++lastPort };
}

/** Binds a flow to A, changes the service and follows the flow. */
function follow(
  to: Target,
  given: ServiceSpec,
  after: ServiceSpec | undefined,
  expect: Answers | Fate,
  from?: Packet['from'],
  difference?: Pick<ExpectedPacket, 'differs'>,
) {
  return async (scene: Scene): Promise<void> => {
    await scene.apply(given);
    const flow = flowTo(to, from);
    assert.equal(await scene.answerer(flow), 'A');
    if (after) await scene.apply(after);
    else await scene.remove();
    await scene.eventually({ ...flow, expect, ...difference });
  };
}

const alone = { alone: true };

/** Datagrams of flows that exist already: connection tracking must forget endpoints that are gone. */
const datagramStories: readonly Story[] = [
  scripted(
    'C43',
    'a UDP flow moves to another endpoint when its endpoint leaves',
    follow('clusterIP', dns, { ...dns, endpoints: ['B'] }, { B: 'OWN' }),
    alone,
  ),
  scripted(
    'C44',
    'a UDP flow is rejected when no endpoint is left',
    follow('clusterIP', dns, { ...dns, endpoints: [] }, 'REJECT'),
    alone,
  ),
  scripted(
    'flows/slices deleted',
    'a UDP flow is rejected when the slices are deleted',
    async (scene) => {
      await scene.apply(dns);
      const flow = flowTo('clusterIP');
      assert.equal(await scene.answerer(flow), 'A');
      scene.cluster.removeSlices(scene.service());
      await scene.eventually({ ...flow, expect: 'REJECT' });
    },
    alone,
  ),
  scripted(
    'flows/service deleted',
    'a UDP flow of a deleted service is dropped',
    // In modes that do not drop it, it goes to the world, where nothing listens.
    follow('clusterIP', dns, undefined, 'DROP', 'pod', withoutServiceNetwork('REJECT')),
    alone,
  ),
  scripted(
    'flows/not serving',
    'an endpoint that stops serving loses its flows',
    follow('clusterIP', dns, { ...dns, endpoints: [{ at: 'A', state: 'gone' }, 'B'] }, { B: 'OWN' }),
    alone,
  ),
  scripted(
    'flows/node port',
    'a UDP flow to a node port moves when its endpoint leaves',
    follow('nodePort', dnsEverywhere, { ...dnsEverywhere, endpoints: ['B'] }, { B: 'MASQ' }),
    alone,
  ),
  scripted(
    'flows/node port local',
    'a UDP flow to a node port under policy Local ends when the endpoint on this node leaves',
    follow(
      'nodePort',
      { ...dnsEverywhere, externalPolicy: 'Local' },
      { ...dnsEverywhere, externalPolicy: 'Local', endpoints: ['B'] },
      'DROP',
      'client',
    ),
    alone,
  ),
  scripted(
    'flows/external',
    'a UDP flow to an external IP moves when its endpoint leaves',
    follow('external', dnsEverywhere, { ...dnsEverywhere, endpoints: ['B'] }, { B: 'MASQ' }),
    alone,
  ),
  scripted(
    'flows/load balancer',
    'a UDP flow to a load balancer IP moves when its endpoint leaves',
    follow('loadBalancer', dnsEverywhere, { ...dnsEverywhere, endpoints: ['B'] }, { B: 'MASQ' }, 'client'),
    alone,
  ),
  scripted(
    'flows/node',
    'a UDP flow of the node itself moves when its endpoint leaves',
    follow('clusterIP', dns, { ...dns, endpoints: ['B'] }, { B: 'MASQ' }, 'node'),
    alone,
  ),
  scripted(
    'flows/drain',
    'a flow stays with an endpoint that drains',
    async (scene) => {
      await scene.apply(dns);
      const flow = flowTo('clusterIP');
      assert.equal(await scene.answerer(flow), 'A');
      await scene.apply({ ...dns, endpoints: [{ at: 'A', state: 'draining' }, 'B'] });
      for (let i = 0; i < ASSURANCES; i++) assert.equal(await scene.answerer(flow), 'A');
      await scene.expect({ from: 'pod', to: 'clusterIP', expect: { B: 'OWN' } });
    },
    alone,
  ),
  scripted(
    'flows/neighbours',
    'flows of endpoints and services that did not change are left alone',
    async (scene) => {
      await scene.apply({ ...dns, endpoints: ['A', 'B'] });
      await scene.apply(dns, 'other');
      const flow = flowTo('clusterIP');
      const first = await scene.answerer(flow);
      assert.equal(await scene.answerer({ ...flow, of: 'other' }), 'A');
      await scene.apply({ ...dns, endpoints: ['A', 'B', 'C', 'D'] });
      await scene.apply({ ...dns, endpoints: ['A', 'B'] });
      for (let i = 0; i < ASSURANCES; i++) {
        assert.equal(await scene.answerer(flow), first);
        assert.equal(await scene.answerer({ ...flow, of: 'other' }), 'A');
      }
    },
    alone,
  ),
  scripted(
    'flows/from nothing',
    'a UDP flow that was rejected without endpoints reaches the first new endpoint',
    async (scene) => {
      await scene.apply({ ...dns, endpoints: [] });
      const flow = flowTo('clusterIP');
      await scene.expect({ ...flow, expect: 'REJECT' });
      await scene.apply(dns);
      await scene.eventually({ ...flow, expect: { A: 'OWN' } });
    },
    alone,
  ),
  scripted(
    'flows/passed by',
    'a UDP flow to an external address moves to the service that gets this address',
    async (scene) => {
      await scene.apply({ ...dns, port: 80, endpoints: ['A'] });
      const world = scene.cluster.landscape.host('world');
      await world.serve(80, 'udp', scene.address('external', scene.service().n));
      const flow = flowTo('external');
      await scene.expect({ ...flow, expect: IGNORE });
      // An answer that arrives after conntrack deleted the flow would create a flow from the server, which stays.
      await world.stop(80, 'udp');
      await scene.apply({ ...dns, port: 80, external: true, endpoints: ['A'] });
      await scene.eventually({ ...flow, expect: { A: 'MASQ' } });
    },
    alone,
  ),
];

/** Existing connections must not be disturbed. */
const connectionStories: readonly Story[] = [
  scripted('C45', 'an established connection stays with an endpoint that left', async (scene) => {
    const web: ServiceSpec = { endpoints: ['A'] };
    await scene.apply(web);
    const conversation = await scene.open({ from: 'pod', to: 'clusterIP' });
    const stays = async () => assert.equal((await conversation.ask())?.by, 'A');
    await scene.apply({ ...web, endpoints: ['B'] });
    await stays();
    await scene.apply({ ...web, endpoints: [] });
    await stays();
    await scene.remove();
    await stays();
    await conversation.close();
  }),
  ...(['client', 'node', 'remote'] as const).map((from) =>
    scripted(
      `connections/${from}`,
      `connections of ${from} through every address survive every change`,
      async (scene) => {
        const web: ServiceSpec = { nodePort: true, external: true, loadBalancer: true, endpoints: ['A'] };
        await scene.apply(web);
        const targets = ['clusterIP', 'nodePort', 'external', 'loadBalancer'] as const;
        const open = await Promise.all(targets.map((to) => scene.open({ from, to })));
        const stay = async () => {
          const answers = await Promise.all(open.map((conversation) => conversation.ask()));
          assert.deepEqual(
            answers.map((answer) => answer?.by),
            ['A', 'A', 'A', 'A'],
          );
        };
        await scene.apply({ ...web, externalPolicy: 'Local', internalPolicy: 'Local', endpoints: ['B'] });
        await stay();
        await scene.apply({ ...web, ranges: ['tenants'], endpoints: [] });
        await stay();
        await scene.remove();
        await stay();
        for (const conversation of open) await conversation.close();
      },
    ),
  ),
  scripted(
    'connections/restart',
    'a restart of the program leaves established connections alone',
    async (scene) => {
      await scene.apply({ endpoints: ['A'] });
      const conversation = await scene.open({ from: 'pod', to: 'clusterIP' });
      await scene.cluster.restart();
      assert.equal((await conversation.ask())?.by, 'A');
      await conversation.close();
    },
    alone,
  ),
];

export const flowStories: readonly Story[] = [...datagramStories, ...connectionStories];
