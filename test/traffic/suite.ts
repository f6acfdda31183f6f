import assert from 'node:assert/strict';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { get, type IncomingMessage } from 'node:http';
import { createInterface } from 'node:readline';
import { after, before, describe, test } from 'node:test';
import { API_PATH } from '../../src/inspect/api.ts';
import type {
  FailedConnections,
  FlowEvent,
  FlowItem,
  FlowList,
  TrafficItem,
  TrafficReport,
} from '../../src/inspect/traffic-api.ts';
import { families } from '../../src/model/ip.ts';
import { enterNamespace, labUnavailable } from '../cluster/lab/namespace.ts';
import { paced } from '../cluster/lab/pace.ts';
import { type AddressBook, addressBooks } from '../contract/address-book.ts';
import { Cluster } from '../contract/cluster.ts';
import { Landscape } from '../contract/landscape.ts';
import { namespace, nodePortOf, podName, podPort, serviceName } from '../contract/objects.ts';
import { Scene } from '../contract/scene.ts';
import type { Packet, ServiceSpec } from '../contract/story.ts';
import { eventually, eventuallyEqual } from '../eventually.ts';
import { inspect, METRICS_URL } from '../program/served-pages.ts';
import { checkBindings, checkExpiry } from './bindings.ts';

export interface TrafficOptions {
  /** `--proxy-mode`. */
  readonly mode: string;
  /** The calling module, which is started again in a new network namespace. */
  readonly module: string;
  /** The process forwards connections itself, so the kernel does not know their endpoints. */
  readonly forwardsItself?: boolean;
  /** Under policy Local, endpoints elsewhere are used when there are none here. */
  readonly bendsPolicyLocal?: boolean;
  /** A client stays bound while the kernel remembers one of its connections. */
  readonly bindingsOutlastTheirTime?: boolean;
}

const FLOWS_URL = `${METRICS_URL.replace(/\/metrics$/, '')}${API_PATH}flows`;
const TIMEOUT_MS = paced(180_000);

const services: Readonly<Record<string, ServiceSpec>> = {
  web: { protocols: ['TCP', 'UDP'], nodePort: true, endpoints: ['A', 'B'] },
  sticky: { affinitySeconds: 600, endpoints: ['A', 'B', 'C'] },
  lonely: { protocols: ['TCP', 'UDP'], endpoints: [] },
  local: { nodePort: true, externalPolicy: 'Local', endpoints: ['B'] },
  ranged: { loadBalancer: true, ranges: ['clients'], endpoints: ['A'] },
  closed: { endpoints: ['C'] },
  silent: { endpoints: ['nobody'] },
};

/** Connections to each Service: who sends how many, and where to. */
const packets: readonly (Packet & { readonly times: number })[] = [
  { from: 'pod', to: 'clusterIP', transport: 'tcp', times: 7 },
  { from: 'node', to: 'clusterIP', transport: 'tcp', times: 3 },
  { from: 'client', to: 'nodePort', transport: 'tcp', times: 5 },
  { from: 'stranger', to: 'nodePort', transport: 'tcp', times: 2 },
  { from: 'pod', to: 'clusterIP', transport: 'udp', times: 6 },
  { from: 'client', to: 'nodePort', transport: 'udp', times: 4 },
  { from: 'pod', to: 'clusterIP', of: 'sticky', times: 5 },
];

/** Connections that fail, and as what. */
const failing: readonly (Packet & {
  readonly of: string;
  readonly times: number;
  readonly as: keyof FailedConnections;
})[] = [
  { from: 'pod', to: 'clusterIP', of: 'lonely', transport: 'tcp', times: 3, as: 'rejected' },
  { from: 'node', to: 'clusterIP', of: 'lonely', transport: 'tcp', times: 2, as: 'rejected' },
  { from: 'pod', to: 'clusterIP', of: 'lonely', transport: 'udp', times: 2, as: 'rejected' },
  { from: 'client', to: 'nodePort', of: 'local', times: 2, as: 'dropped' },
  { from: 'stranger', to: 'loadBalancer', of: 'ranged', times: 2, as: 'filtered' },
  { from: 'pod', to: 'clusterIP', of: 'closed', times: 3, as: 'reset' },
  { from: 'pod', to: 'clusterIP', of: 'silent', times: 2, as: 'unanswered' },
];

/**
 * Sends a known number of connections and bytes, and expects exactly those in the figures and in the list of flows. The
 * real program gets objects from an API server and programs a real kernel.
 */
export function runTraffic(options: TrafficOptions): void {
  const { mode, module, forwardsItself = false, bindingsOutlastTheirTime = false } = options;
  const unavailable = labUnavailable();
  if (unavailable !== undefined) {
    test(`traffic in ${mode} mode`, { skip: unavailable }, () => {});
    return;
  }
  const own = enterNamespace(module);
  describe(`traffic in ${mode} mode`, () => {
    let landscape: Landscape;
    let cluster: Cluster;
    before(async () => {
      landscape = await Landscape.build(own);
      forgetUnansweredConnections();
      cluster = await Cluster.open(mode, families, landscape);
      // Metrics also keep the program counting while the test waits.
      await cluster.start({ flags: ['--service-metrics=connections,bytes'] });
    });
    after(async () => {
      await cluster.close();
      landscape.close();
    });
    for (const family of families) {
      describe(`over ${family}`, () => {
        let scene: Scene;
        before(async () => {
          scene = new Scene(cluster, addressBooks[family]);
          for (const [name, spec] of Object.entries(services)) scene.put(spec, name);
          await cluster.settled();
          await inspect<TrafficReport>('traffic');
        });
        after(() => scene.close());
        test('figures per service, endpoint and client are those of the connections', {
          timeout: TIMEOUT_MS,
        }, async () => {
          await checkFigures(scene);
        });
        test('connections that fail are counted by what became of them', {
          timeout: TIMEOUT_MS,
        }, async () => {
          await checkFailures(scene, landscape, options);
        });
        test('an open connection is among the flows, and counts as open until it ends', {
          timeout: TIMEOUT_MS,
        }, async () => {
          await checkFlows(scene, forwardsItself);
        });
        test('clients with affinity are told with their endpoint and the time left', {
          timeout: TIMEOUT_MS,
        }, async () => {
          await checkBindings(scene);
          if (!bindingsOutlastTheirTime) await checkExpiry(scene);
        });
        test('who watches flows sees openings, and refusals with their reason', {
          timeout: TIMEOUT_MS,
        }, async () => {
          await checkWatch(scene);
        });
      });
    }
  });
}

/** Lets conntrack give up early on connections without an answer, which takes two minutes otherwise. */
function forgetUnansweredConnections(): void {
  writeFileSync('/proc/sys/net/netfilter/nf_conntrack_tcp_timeout_syn_sent', '10');
}

async function checkFigures(scene: Scene): Promise<void> {
  const { book } = scene;
  const before = await readings(scene);
  const opened = new Map<string, number>();
  const count = (key: string, times = 1) => opened.set(key, (opened.get(key) ?? 0) + times);
  for (const { times, ...packet } of packets) {
    const { of: name = 'web', transport = 'tcp' } = packet;
    const service = `${name}/${transport}`;
    for (let i = 0; i < times; i++) {
      const by = await scene.answerer(packet);
      count(`${service} to ${by}`);
    }
    count(service, times);
    count(`${service} from ${scene.question(packet).source}`, times);
  }
  await eventuallyEqual(
    'the figures are those of the connections',
    async () => {
      const now = await readings(scene);
      const changes = [...now].map(([key, value]): [string, number] => [key, value - (before.get(key) ?? 0)]);
      return new Map(changes.filter(([, change]) => change !== 0));
    },
    new Map([...opened].sort()),
  );
  const { n } = scene.service('web');
  const labels = `namespace="${namespace}",port="tcp",service="${serviceName(n)}"`;
  await eventuallyEqual(
    'the metric has the connections',
    () => scene.cluster.metric('kubeproxy_ts_service_connections_total', labels),
    opened.get('web/tcp') ?? 0,
  );
  await eventually('UDP packets and bytes are those that were sent', async () => {
    const { items } = await inspect<TrafficReport>('traffic', {
      by: 'client',
      name: `${namespace}/${serviceName(scene.service('web').n)}:udp`,
    });
    const pod = items.find(({ client }) => client === book.hosts.pod);
    const header = book.family === 'IPv4' ? 28 : 48;
    assert.equal(pod?.packetsToEndpoint, 6);
    assert.equal(pod?.packetsToClient, 6);
    assert.equal(pod?.bytesToEndpoint, 6 * (header + questionBytes));
    return true;
  });
}

/** A datagram of the lab's clients. */
const questionBytes = 1;

/** Openings by service and protocol, by endpoint, and by client. Sorted. */
async function readings(scene: Scene): Promise<Map<string, number>> {
  const found = new Map<string, number>();
  for (const name of Object.keys(services)) {
    const full = `${namespace}/${serviceName(scene.service(name).n)}`;
    for (const by of ['service', 'endpoint', 'client'] as const) {
      const { items, lostEvents } = await inspect<TrafficReport>('traffic', { by, name: full });
      assert.equal(lostEvents, 0);
      for (const item of items.filter(({ family }) => family === scene.book.family)) {
        found.set(keyOf(name, item, scene.book), item.opened);
      }
    }
  }
  return new Map([...found].sort());
}

function keyOf(name: string, { service, endpoint, client }: TrafficItem, book: AddressBook): string {
  const key = `${name}/${service.slice(service.lastIndexOf('/') + 1).toLowerCase()}`;
  if (client !== null) return `${key} from ${client}`;
  if (endpoint === null) return key;
  const host = Object.entries(book.hosts).find(
    ([, address]) => endpoint.replace(/[[\]]/g, '') === `${address}:${podPort}`,
  );
  return `${key} to ${host?.[0] ?? endpoint}`;
}

/** Sends connections that fail, and one that does not to each Service where others do. */
async function checkFailures(scene: Scene, landscape: Landscape, options: TrafficOptions): Promise<void> {
  const { forwardsItself = false, bendsPolicyLocal = false } = options;
  const sending = failing.filter(({ as }) => as !== 'dropped' || !bendsPolicyLocal);
  const wanted = new Map<string, number>();
  const host = landscape.host('C');
  await host.stop(podPort, 'tcp');
  try {
    const sent = sending.flatMap(({ times, as, ...packet }) => {
      const key = `${packet.of}/${packet.transport ?? 'tcp'} ${as}`;
      // A process that forwards accepts a connection before it tries to reach an endpoint.
      const isNoticed = !forwardsItself || (as !== 'reset' && as !== 'unanswered');
      if (isNoticed) wanted.set(key, (wanted.get(key) ?? 0) + times);
      return Array.from({ length: times }, async () => ({ key, outcome: await scene.outcome(packet) }));
    });
    for (const { key, outcome } of await Promise.all(sent)) assert.notEqual(outcome.kind, 'answered', key);
  } finally {
    await host.serve(podPort, 'tcp');
  }
  await scene.answerer({ from: 'client', to: 'loadBalancer', of: 'ranged' });
  await scene.answerer({ from: 'pod', to: 'nodePort', of: 'local' });
  await eventuallyEqual(
    'the failures are those of the connections',
    () => failures(scene),
    new Map([...wanted].sort()),
    {
      withinMs: 60_000,
    },
  );
}

async function failures(scene: Scene): Promise<Map<string, number>> {
  const found: [string, number][] = [];
  for (const name of new Set(failing.map((packet) => packet.of))) {
    const { items } = await inspect<TrafficReport>('traffic', {
      name: `${namespace}/${serviceName(scene.service(name).n)}`,
    });
    for (const item of items.filter(({ family }) => family === scene.book.family)) {
      const key = keyOf(name, item, scene.book);
      for (const [as, times] of Object.entries(item.failed))
        if (times > 0) found.push([`${key} ${as}`, times]);
    }
  }
  return new Map(found.sort());
}

async function checkFlows(scene: Scene, forwardsItself: boolean): Promise<void> {
  const { book } = scene;
  const { n } = scene.service('web');
  const name = `${namespace}/${serviceName(n)}:tcp`;
  const conversation = await scene.open({ from: 'client', to: 'nodePort', transport: 'tcp' });
  const by = (await conversation.ask())?.by;
  const established = async () => {
    const { items } = await inspect<FlowList>('flows', { name, state: 'ESTABLISHED' });
    return items.filter(({ family }) => family === book.family);
  };
  const open = async () => {
    const { items } = await inspect<TrafficReport>('traffic', { name });
    return items.find(({ family }) => family === book.family)?.open;
  };
  await eventuallyEqual('one connection is open', async () => (await established()).length, 1);
  const [flow] = await established();
  assert.ok(flow);
  checkFlow(flow, book, n, forwardsItself ? undefined : by);
  await eventuallyEqual('one open connection is counted', open, 1);
  await conversation.close();
  await eventuallyEqual('no connection is open', async () => (await established()).length, 0);
  await eventuallyEqual('no open connection is counted', open, 0);
}

/** Follows flows while one connection is made and one is refused. */
async function checkWatch(scene: Scene): Promise<void> {
  const seen: FlowEvent[] = [];
  const request = get(`${FLOWS_URL}?watch=true&namespace=${namespace}`, { agent: false });
  const [response] = (await once(request, 'response')) as [IncomingMessage];
  const lines = createInterface({ input: response });
  lines.on('line', (line) => seen.push(JSON.parse(line) as FlowEvent));
  // Ending it from this side is an error of the connection.
  for (const part of [request, response]) part.on('error', () => {});
  const has = (event: FlowEvent['event'], of: string, reason: RegExp) => () =>
    seen.some(
      (each) =>
        each.event === event &&
        each.flow?.service === `${namespace}/${serviceName(scene.service(of).n)}:tcp/TCP` &&
        each.flow.client.includes(scene.book.hosts.pod) &&
        reason.test(each.reason ?? ''),
    );
  try {
    await scene.answerer({ from: 'pod', to: 'clusterIP', transport: 'tcp' });
    await scene.outcome({ from: 'pod', to: 'clusterIP', of: 'lonely', transport: 'tcp' });
    await eventually('the opening is reported', has('Opened', 'web', /^$/));
    await eventually('the refusal is reported', has('Rejected', 'lonely', /no endpoints/));
  } finally {
    lines.close();
    request.destroy();
  }
}

function checkFlow(flow: FlowItem, book: AddressBook, n: number, by: string | undefined): void {
  const host = (place: string | null) => place?.replace(/:\d+$/, '').replace(/[[\]]/g, '');
  assert.equal(host(flow.client), book.clients.client);
  assert.equal(host(flow.frontend), book.node);
  assert.ok(flow.frontend.endsWith(`:${nodePortOf(n)}`), flow.frontend);
  const at = by === 'A' ? 'A' : 'B';
  assert.equal(host(flow.endpoint), by && book.hosts[at]);
  assert.equal(flow.pod, by === undefined ? null : `${namespace}/${podName(at)}`);
  assert.equal(flow.service, `${namespace}/${serviceName(n)}:tcp/TCP`);
  assert.ok(flow.ageSeconds !== null && flow.bytesToClient !== null && flow.bytesToClient > 0);
}
