import assert from 'node:assert/strict';
import { eventuallyEqual } from '../../eventually.ts';
import { namespace, serviceName } from '../objects.ts';
import type { Scene } from '../scene.ts';
import { type ServiceSpec, type Story, scripted } from '../story.ts';

const victim: ServiceSpec = { loadBalancer: true, endpoints: ['A'], made: { at: 200 } };
const thief: ServiceSpec = { endpoints: ['B'], made: { at: 100 } };

/** Creates the thief first: its Service is older, and its name and number come earlier. */
async function attack(scene: Scene): Promise<void> {
  scene.put(thief, 'thief');
  await scene.apply(victim, 'victim');
  await scene.apply(claiming(scene, 'loadBalancer'), 'thief');
}

function claiming(
  scene: Scene,
  address: 'clusterIP' | 'external' | 'loadBalancer',
  spec = thief,
): ServiceSpec {
  return { ...spec, claims: { of: scene.service('victim').n, address } };
}

const toVictim = { from: 'client', to: 'loadBalancer', of: 'victim' } as const;

/** An address that two services claim has one owner, the same in every mode; the loser is reported. */
export const ownershipStories: readonly Story[] = [
  scripted(
    'ownership/attack',
    'a load balancer IP cannot be taken by the external IP of another service, with or without endpoints behind it',
    async (scene) => {
      await attack(scene);
      await scene.expect(
        { ...toVictim, expect: { A: 'MASQ' } },
        { from: 'pod', to: 'clusterIP', of: 'thief', expect: { B: 'OWN' } },
      );
      await scene.apply({ ...victim, endpoints: [] }, 'victim');
      await scene.expect({ ...toVictim, expect: 'REJECT' });
      await scene.apply(victim, 'victim');
      await scene.expect({ ...toVictim, expect: { A: 'MASQ' } });
      await assertReported(scene);
    },
  ),
  scripted(
    'ownership/deleted',
    'when the owner of a contested address is deleted, the other service is served there, until it comes back',
    async (scene) => {
      await attack(scene);
      await scene.remove('victim');
      await scene.expect({ ...toVictim, expect: { B: 'MASQ' } });
      await eventuallyEqual('no report', () => scene.cluster.lostBy(scene.service('thief')), []);
      await scene.apply(victim, 'victim');
      await scene.expect({ ...toVictim, expect: { A: 'MASQ' } });
    },
  ),
  scripted(
    'ownership/given up',
    'when the owner loses the address from its status, the other service is served there',
    async (scene) => {
      await attack(scene);
      await scene.apply({ ...victim, loadBalancer: false }, 'victim');
      await scene.expect(
        { ...toVictim, expect: { B: 'MASQ' } },
        { from: 'pod', to: 'clusterIP', of: 'victim', expect: { A: 'OWN' } },
      );
    },
  ),
  scripted('ownership/cluster IP', 'a cluster IP cannot be taken by an external IP', async (scene) => {
    scene.put(thief, 'thief');
    await scene.apply(victim, 'victim');
    await scene.apply(claiming(scene, 'clusterIP'), 'thief');
    await scene.expect({ from: 'pod', to: 'clusterIP', of: 'victim', expect: { A: 'OWN' } });
  }),
  scripted(
    'ownership/age',
    'of two services with the same external IP the older owns it; at the same age, the smaller UID',
    async (scene) => {
      const old: ServiceSpec = { external: true, endpoints: ['A'], made: { at: 100, uid: 'b' } };
      const to = { from: 'client', to: 'external', of: 'victim' } as const;
      scene.put(thief, 'thief');
      await scene.apply(old, 'victim');
      await scene.apply(claiming(scene, 'external', { ...thief, made: { at: 300 } }), 'thief');
      await scene.expect({ ...to, expect: { A: 'MASQ' } });
      await scene.apply(claiming(scene, 'external', { ...thief, made: { at: 100, uid: 'a' } }), 'thief');
      await scene.expect({ ...to, expect: { B: 'MASQ' } });
      await scene.apply(claiming(scene, 'external', { ...thief, made: { at: 100, uid: 'c' } }), 'thief');
      await scene.expect({ ...to, expect: { A: 'MASQ' } });
    },
  ),
  scripted(
    'ownership/restart',
    'a restart leaves a contested address with its owner',
    async (scene) => {
      await attack(scene);
      await scene.cluster.restart();
      await scene.expect({ ...toVictim, expect: { A: 'MASQ' } });
      await assertReported(scene);
    },
    { alone: true },
  ),
];

/** Checks that `services`, `status`, the metric and an event report the loss; all but the metric name the owner. */
async function assertReported(scene: Scene): Promise<void> {
  const { cluster } = scene;
  const [loser, owner] = [scene.service('thief'), scene.service('victim')].map(({ n }) => serviceName(n));
  const key = (name: string | undefined) => `${namespace}/${name}:tcp/TCP`;
  const lost = cluster.books.map((book) => {
    const address = book.service(scene.service('victim').n).loadBalancer;
    return `external IP ${book.family === 'IPv4' ? address : `[${address}]`}:80/TCP`;
  });
  await eventuallyEqual('the report', async () => (await cluster.lostBy(scene.service('thief'))).sort(), [
    ...lost.map((frontend) => `${frontend} → ${key(owner)}`).sort(),
  ]);
  const texts = lost.map(
    (frontend) => `service port ${key(loser)}: ${frontend} belongs to service port ${key(owner)}`,
  );
  // Plans show in `services` before the sync that reports them has ended.
  await cluster.eventually('the report in the status', async () => {
    const problems = (await cluster.status()).setAside.flatMap((object) => object.problems);
    for (const text of texts)
      assert.ok(problems.includes(text), `${text} is not among ${problems.join('\n')}`);
    const samples = await cluster.metric('kubeproxy_ts_set_aside');
    assert.ok(samples >= lost.length, `${samples} samples of the metric`);
    return true;
  });
  await cluster.eventually('an event about the service that lacks the address', async () => {
    const notes = cluster.api.store.list('events').map(({ raw }) => String(raw.note));
    // Events of both families are one series, which keeps the note of its first event.
    return texts.some((text) => notes.some((note) => note.endsWith(text)));
  });
}
