import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import type { OpenConversation } from '../../cluster/lab/host.ts';
import { paced } from '../../cluster/lab/pace.ts';
import { isBrief } from '../brief.ts';
import type { Scene } from '../scene.ts';
import { type Packet, type ServiceSpec, type Story, scripted } from '../story.ts';

/** The timeout is longer than any story, even with a restart of the program in an emulated machine. */
const sticky: ServiceSpec = { affinitySeconds: 600, endpoints: ['A', 'B'] };
const withFrontends: ServiceSpec = { ...sticky, nodePort: true, external: true, loadBalancer: true };

/** By chance, all of these clients reach the same endpoint only once in 2 * 10^9 times; in brief, once in 8 * 10^6. */
const CROWD = isBrief ? 24 : 32;
const crowd = Array.from({ length: CROWD }, (_, i) => i);

/** The endpoint that each of many clients reaches with one new connection. */
function choices(
  scene: Scene,
  to: Packet['to'] = 'clusterIP',
  more: Partial<Packet> = {},
): Promise<string[]> {
  return Promise.all(
    crowd.map((i) => scene.answerer({ from: 'client', source: scene.book.crowd(i), to, ...more })),
  );
}

function assertSpread(chosen: readonly string[]): void {
  assert.deepEqual([...new Set(chosen)].sort(), ['A', 'B'], 'clients are free to go to either endpoint');
}

async function allAt(scene: Scene, endpoint: string): Promise<void> {
  assert.deepEqual([...new Set(await choices(scene))], [endpoint]);
}

export const affinityStories: readonly Story[] = [
  scripted(
    'C38',
    'a client stays with its endpoint, every new connection restarts the timer',
    async (scene) => {
      const seconds = paced(4);
      await scene.apply({ ...sticky, affinitySeconds: seconds });
      const first = await choices(scene);
      assertSpread(first);
      // Pauses are much shorter than the timer, so that it does not expire when the machine stalls for a moment.
      const end = performance.now() + 1.25 * seconds * 1000;
      while (performance.now() < end) {
        await sleep(paced(1_000));
        assert.deepEqual(await choices(scene), first);
      }
    },
  ),
  scripted('C39', 'traffic on an open connection does not keep the record alive', async (scene) => {
    await scene.apply({ ...sticky, affinitySeconds: paced(1) });
    const open = await Promise.all(
      crowd.map((i) => scene.open({ from: 'client', source: scene.book.crowd(i), to: 'clusterIP' })),
    );
    const first = await Promise.all(open.map(answerer));
    for (let i = 0; i < 4; i++) {
      await sleep(paced(400));
      assert.deepEqual(await Promise.all(open.map(answerer)), first);
    }
    assert.notDeepEqual(await choices(scene), first);
    await Promise.all(open.map((conversation) => conversation.close()));
  }),
  scripted(
    'C40',
    'a record ends with its endpoint; when the endpoint is back, the newer record counts',
    async (scene) => {
      await scene.apply(sticky);
      assertSpread(await choices(scene));
      await scene.apply({ ...sticky, endpoints: [{ at: 'A', state: 'unready' }, 'B'] });
      await allAt(scene, 'B');
      await scene.apply(sticky);
      await allAt(scene, 'B');
    },
  ),
  scripted('affinity/returns', 'an endpoint that comes back starts without records', async (scene) => {
    await scene.apply({ ...sticky, endpoints: ['A'] });
    await allAt(scene, 'A');
    await scene.apply({ ...sticky, endpoints: ['B'] });
    await scene.apply(sticky);
    assertSpread(await choices(scene));
  }),
  scripted('C41', 'all addresses of a service port share its affinity records', async (scene) => {
    await scene.apply(withFrontends);
    const first = await choices(scene);
    assertSpread(first);
    for (const to of ['nodePort', 'external', 'loadBalancer'] as const) {
      assert.deepEqual(await choices(scene, to), first, to);
    }
  }),
  scripted(
    'C42',
    'affinity records survive a restart',
    async (scene) => {
      await scene.apply(sticky);
      const first = await choices(scene);
      for (let i = 0; i < 2; i++) {
        await scene.cluster.restart();
        assert.deepEqual(await choices(scene), first);
      }
    },
    { alone: true },
  ),
  scripted('affinity/udp', 'datagrams of one client stay with one endpoint', async (scene) => {
    await scene.apply({ ...withFrontends, protocols: ['UDP'] });
    const first = await choices(scene);
    assertSpread(first);
    assert.deepEqual(await choices(scene), first);
    assert.deepEqual(await choices(scene, 'nodePort'), first);
  }),
  scripted('affinity/per port', 'each port of a service has its own affinity records', async (scene) => {
    await scene.apply({ ...sticky, protocols: ['TCP', 'UDP'] });
    const first = await choices(scene);
    assert.notDeepEqual(await choices(scene, 'clusterIP', { transport: 'udp' }), first);
    assert.deepEqual(await choices(scene), first);
  }),
  scripted('affinity/per service', 'each service has its own affinity records', async (scene) => {
    await scene.apply(sticky);
    await scene.apply(sticky, 'other');
    assert.notDeepEqual(await choices(scene), await choices(scene, 'clusterIP', { of: 'other' }));
  }),
  scripted(
    'affinity/local list',
    'a record counts only where its endpoint is in the list that serves',
    async (scene) => {
      const local: ServiceSpec = { ...withFrontends, externalPolicy: 'Local' };
      await scene.apply({ ...local, endpoints: ['B'] });
      await allAt(scene, 'B');
      await scene.apply(local);
      assert.deepEqual([...new Set(await choices(scene, 'nodePort'))], ['A']);
      await scene.apply({ ...local, endpoints: ['A', 'C'] });
      const here = await choices(scene, 'loadBalancer');
      assert.deepEqual(await choices(scene, 'nodePort'), here);
    },
  ),
  scripted('affinity/more endpoints', 'new endpoints take no client away from the others', async (scene) => {
    await scene.apply(sticky);
    const first = await choices(scene);
    await scene.apply({ ...sticky, endpoints: ['A', 'B', 'C', 'D'] });
    assert.deepEqual(await choices(scene), first);
    await scene.apply({ ...sticky, endpoints: ['A', 'C', 'B'] });
    assert.deepEqual(await choices(scene), first);
  }),
  scripted(
    'affinity/other changes',
    'affinity records outlive changes that leave their endpoint in place',
    async (scene) => {
      await scene.apply(withFrontends);
      const first = await choices(scene);
      await scene.apply({ ...withFrontends, external: false, annotations: { changed: 'yes' } });
      assert.deepEqual(await choices(scene), first);
      await scene.apply({ ...withFrontends, ranges: ['everyone'], affinitySeconds: 500 });
      assert.deepEqual(await choices(scene), first);
    },
  ),
  scripted('affinity/off', 'turning affinity off removes all records', async (scene) => {
    await scene.apply({ ...sticky, endpoints: ['A'] });
    await allAt(scene, 'A');
    const { affinitySeconds: _, ...free } = sticky;
    await scene.apply(free);
    assertSpread(await choices(scene));
    await scene.apply({ ...free, endpoints: ['A'] });
    await scene.apply(sticky);
    assertSpread(await choices(scene));
  }),
  scripted('affinity/on', 'clients stay with their endpoint after affinity is turned on', async (scene) => {
    const { affinitySeconds: _, ...free } = sticky;
    await scene.apply(free);
    assertSpread(await choices(scene));
    await scene.apply(sticky);
    const first = await choices(scene);
    assert.deepEqual(await choices(scene), first);
    assert.deepEqual(await choices(scene), first);
  }),
  scripted('affinity/expires', 'a client that stays away too long is free again', async (scene) => {
    await scene.apply({ ...sticky, affinitySeconds: paced(1), endpoints: ['A'] });
    await allAt(scene, 'A');
    await scene.apply({ ...sticky, affinitySeconds: paced(1) });
    await sleep(paced(1500));
    assertSpread(await choices(scene));
  }),
  scripted('affinity/recreated', 'a service deleted and made again starts without records', async (scene) => {
    await scene.apply({ ...sticky, endpoints: ['A'] });
    await allAt(scene, 'A');
    await scene.remove();
    await scene.apply(sticky);
    assertSpread(await choices(scene));
  }),
  scripted(
    'affinity/masqueraded',
    'affinity uses the client address from before masquerading',
    async (scene) => {
      await scene.apply(withFrontends);
      const first = await choices(scene, 'nodePort');
      assertSpread(first);
      await scene.expect({ from: 'client', to: 'nodePort', expect: await ownChoice(scene, 'nodePort') });
    },
  ),
];

/** Connects once and returns the endpoint as the expectation for further connections. */
async function ownChoice(scene: Scene, to: Packet['to']) {
  return { [await scene.answerer({ from: 'client', to })]: 'MASQ' } as const;
}

async function answerer(conversation: OpenConversation): Promise<string | undefined> {
  return (await conversation.ask())?.by;
}
