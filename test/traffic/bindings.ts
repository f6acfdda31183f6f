import assert from 'node:assert/strict';
import type { AffinityItem, AffinityReport } from '../../src/inspect/traffic-api.ts';
import { joinHostPort } from '../../src/model/ip.ts';
import { namespace, podName, serviceName } from '../contract/objects.ts';
import type { Scene } from '../contract/scene.ts';
import type { Packet, ServiceSpec } from '../contract/story.ts';
import { eventuallyEqual } from '../eventually.ts';
import { inspect } from '../program/served-pages.ts';
import { hostAt } from './ledger.ts';

const seconds = 600;
const places = ['A', 'B', 'C'] as const;
const bound = { affinitySeconds: seconds, nodePort: true, endpoints: places } satisfies ServiceSpec;
const packets: readonly Packet[] = [
  { from: 'pod', to: 'clusterIP', of: 'bound' },
  { from: 'node', to: 'clusterIP', of: 'bound' },
  { from: 'client', to: 'nodePort', of: 'bound' },
];

/** Each client that calls is reported with the endpoint that answered it, until that endpoint goes away. */
export async function checkBindings(scene: Scene): Promise<void> {
  await scene.apply(bound, 'bound');
  assert.deepEqual((await affinity(scene)).items, []);
  const expected = new Map<string, string>();
  for (const packet of packets) {
    const by = await scene.answerer(packet);
    expected.set(clientOf(scene, packet), by);
    // The second connection renews the binding.
    assert.equal(await scene.answerer(packet), by);
  }
  await eventuallyEqual(
    'every client is bound to the endpoint that answered it',
    () => clients(scene),
    expected,
  );
  const { items, leftOut } = await affinity(scene);
  assert.equal(leftOut, 0);
  for (const item of items) checkItem(scene, item);
  await checkSelection(scene, expected);
  const [[, gone] = []] = expected;
  await scene.apply({ ...bound, endpoints: bound.endpoints.filter((place) => place !== gone) }, 'bound');
  await eventuallyEqual(
    'an endpoint that is gone has no clients',
    () => clients(scene),
    new Map([...expected].filter(([, by]) => by !== gone)),
  );
}

/** A binding whose time is over is not reported, also while the kernel still remembers the client. */
export async function checkExpiry(scene: Scene): Promise<void> {
  await scene.apply({ affinitySeconds: 2, endpoints: ['A'] }, 'brief');
  await scene.answerer({ from: 'pod', to: 'clusterIP', of: 'brief' });
  await eventuallyEqual('nobody is bound any more', () => clients(scene, 'brief'), new Map());
}

async function checkSelection(scene: Scene, expected: ReadonlyMap<string, string>): Promise<void> {
  const pod = scene.book.hosts.pod;
  const [only, ...others] = (await affinity(scene, { client: pod })).items;
  assert.deepEqual([only?.client, others], [pod, []]);
  const first = await affinity(scene, { limit: '1' });
  assert.deepEqual([first.items.length, first.leftOut], [1, expected.size - 1]);
  const { items } = await affinity(scene, {}, 'web');
  assert.deepEqual(items, [], 'a Service without affinity binds nobody');
}

function checkItem(scene: Scene, item: AffinityItem): void {
  const { service, client, endpoint, pod, secondsLeft, frontend } = item;
  const { n } = scene.service('bound');
  assert.equal(service, `${namespace}/${serviceName(n)}:tcp/TCP`);
  const place = places.find((at) => at === hostAt(endpoint, scene.book));
  assert.equal(pod, place && `${namespace}/${podName(place)}`);
  assert.ok(secondsLeft > 0 && secondsLeft <= seconds, `${secondsLeft} s left`);
  const packet = packets.find((each) => clientOf(scene, each) === client);
  assert.ok(packet);
  const { address, port } = scene.question(packet);
  assert.ok(frontend === null || frontend === joinHostPort(address, port), `${frontend}`);
}

function clientOf(scene: Scene, packet: Packet): string {
  return scene.question(packet).source ?? '';
}

/** The name of the endpoint of each client that is bound. */
async function clients(scene: Scene, of?: string): Promise<Map<string, string>> {
  const { items } = await affinity(scene, {}, of);
  return new Map(items.map(({ client, endpoint }) => [client, hostAt(endpoint, scene.book)]));
}

/** Those of the family of the scene. */
async function affinity(
  scene: Scene,
  query: Readonly<Record<string, string>> = {},
  of = 'bound',
): Promise<AffinityReport> {
  const name = `${namespace}/${serviceName(scene.service(of).n)}`;
  const report = await inspect<AffinityReport>('affinity', { name, ...query });
  assert.deepEqual(
    report.families.map(({ error }) => error),
    [null, null],
  );
  return { ...report, items: report.items.filter(({ family }) => family === scene.book.family) };
}
