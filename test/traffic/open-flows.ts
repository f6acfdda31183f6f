import assert from 'node:assert/strict';
import type { FlowItem, FlowList, TrafficItem } from '../../src/inspect/traffic-api.ts';
import { joinHostPort } from '../../src/model/ip.ts';
import type { OpenConversation } from '../cluster/lab/host.ts';
import { namespace, podName, serviceName } from '../contract/objects.ts';
import type { Scene } from '../contract/scene.ts';
import { eventually, eventuallyEqual } from '../eventually.ts';
import { inspect } from '../program/served-pages.ts';
import { hostAt, type Sending } from './ledger.ts';
import { Views } from './views.ts';

/** Connections that stay open; on each, `times` questions of one byte are asked. */
const talks: readonly Sending[] = [
  { from: 'pod', to: 'clusterIP', of: 'talk', times: 1 },
  { from: 'node', to: 'clusterIP', of: 'talk', times: 2 },
  { from: 'client', to: 'nodePort', of: 'talk', times: 3 },
  { from: 'stranger', to: 'nodePort', of: 'talk', times: 4 },
];

/** Where the endpoints of the Service are. */
const talkPlaces = ['A', 'B'] as const;

/** An open connection, as its client knows it. */
interface Talk {
  readonly client: string;
  readonly frontend: string;
  /** The host that answers. */
  readonly by: string;
  /** What was said, without headers. */
  readonly bytesToEndpoint: number;
  readonly bytesToClient: number;
}

/** Open connections are among the flows, with their bytes, and count as open until they end: in every view. */
export async function checkOpenFlows(scene: Scene, forwardsItself: boolean): Promise<void> {
  const views = new Views(scene, ['talk']);
  const conversations: OpenConversation[] = [];
  try {
    const wanted: Talk[] = [];
    for (const sending of talks) {
      const conversation = await scene.open(sending);
      conversations.push(conversation);
      wanted.push(await talk(scene, conversation, sending));
    }
    await checkTalks(views, wanted, forwardsItself);
  } finally {
    for (const conversation of conversations) await conversation.close();
  }
  await eventuallyEqual('no connection is open', async () => (await established(scene)).length, 0);
  await eventuallyEqual('no open connection is counted', async () => (await figures(views))?.open, 0);
  await eventuallyEqual('Prometheus reads none', () => views.metric('open_connections'), new Map());
}

async function talk(scene: Scene, conversation: OpenConversation, sending: Sending): Promise<Talk> {
  const { source, address, port } = scene.question(sending);
  let answer: Awaited<ReturnType<OpenConversation['ask']>> = null;
  for (let i = 0; i < sending.times; i++) answer = await conversation.ask();
  assert.ok(answer, 'an open connection is answered');
  const { by, source: seen } = answer;
  const answerBytes = Buffer.byteLength(`${JSON.stringify({ by, source: seen })}\n`);
  return {
    client: source ?? '',
    frontend: joinHostPort(address, port),
    by,
    bytesToEndpoint: sending.times,
    // One answer comes without a question.
    bytesToClient: (sending.times + 1) * answerBytes,
  };
}

async function checkTalks(views: Views, wanted: readonly Talk[], forwardsItself: boolean): Promise<void> {
  const { scene } = views;
  await eventuallyEqual(
    'the open connections are flows',
    async () => (await established(scene)).length,
    wanted.length,
  );
  const flows = await established(scene);
  for (const each of wanted) checkFlow(each, flows, scene);
  await eventually('every view has their bytes', async () => {
    const said = sumOf(forwardsItself ? wanted : await established(scene));
    const volume = (item: TrafficItem | undefined) =>
      item && { in: item.bytesToEndpoint, out: item.bytesToClient, open: item.open };
    const all = { ...said, open: wanted.length };
    assert.deepEqual(volume(await figures(views)), all);
    assert.deepEqual(await metrics(views), all);
    assert.deepEqual(volume(views.byService((await views.topReport('service')).items).get('talk')?.[0]), all);
    return true;
  });
  const rate = views.rates([await views.traffic('service')]).get('talk/tcp');
  assert.equal(rate?.open, wanted.length);
  const lanes = await views.lanes();
  for (const [by, own] of Map.groupBy(wanted, (each) => each.by)) {
    assert.ok(
      lanes.get(`talk/tcp to ${by}`)?.startsWith(`${own.length} open, `),
      lanes.get(`talk/tcp to ${by}`),
    );
  }
}

function checkFlow(wanted: Talk, flows: readonly FlowItem[], scene: Scene): void {
  const flow = flows.find(({ client }) => client.startsWith(joinHostPort(wanted.client, '')));
  assert.ok(flow, `a flow of ${wanted.client}`);
  assert.equal(flow.frontend, wanted.frontend);
  assert.equal(flow.service, `${namespace}/${serviceName(scene.service('talk').n)}:tcp/TCP`);
  assert.equal(flow.endpoint && hostAt(flow.endpoint, scene.book), wanted.by);
  const place = talkPlaces.find((at) => at === wanted.by);
  assert.ok(place);
  assert.equal(flow.pod, `${namespace}/${podName(place)}`);
  assert.ok(flow.ageSeconds !== null);
  // A packet has an IP header, a TCP header and at most 40 bytes of options. Some may have been sent twice.
  const least = scene.book.family === 'IPv4' ? 40 : 60;
  for (const [bytes, packets, said] of [
    [flow.bytesToEndpoint ?? 0, flow.packetsToEndpoint ?? 0, wanted.bytesToEndpoint],
    [flow.bytesToClient ?? 0, flow.packetsToClient ?? 0, wanted.bytesToClient],
  ] as const) {
    assert.ok(bytes >= said + packets * least, `${bytes} bytes in ${packets} packets, ${said} said`);
    assert.ok(
      bytes <= 2 * said + packets * (least + 40),
      `${bytes} bytes in ${packets} packets, ${said} said`,
    );
  }
}

function sumOf(flows: readonly Pick<FlowItem, 'bytesToEndpoint' | 'bytesToClient'>[]) {
  return {
    in: flows.reduce((sum, { bytesToEndpoint }) => sum + (bytesToEndpoint ?? Number.NaN), 0),
    out: flows.reduce((sum, { bytesToClient }) => sum + (bytesToClient ?? Number.NaN), 0),
  };
}

async function established(scene: Scene): Promise<FlowItem[]> {
  const name = `${namespace}/${serviceName(scene.service('talk').n)}`;
  const { items } = await inspect<FlowList>('flows', { name, state: 'ESTABLISHED' });
  return items.filter(({ family }) => family === scene.book.family);
}

async function figures(views: Views): Promise<TrafficItem | undefined> {
  return views.byService((await views.traffic('service')).items).get('talk')?.[0];
}

async function metrics(views: Views) {
  const bytes = await views.metric('bytes_total', 'direction');
  const open = await views.metric('open_connections');
  return { in: bytes.get('talk/tcp in'), out: bytes.get('talk/tcp out'), open: open.get('talk/tcp') };
}
