import assert from 'node:assert/strict';
import { test } from 'node:test';
import { planOf, plansByKey } from '../../test/cluster/plans.ts';
import { flowItem } from '../../test/ctl/traffic-server.ts';
import { FakeClock } from '../../test/fake-clock.ts';
import type { ForwardedConnections } from '../backends/mode.ts';
import type { FlowFilter, TrafficSource } from '../inspect/traffic.ts';
import type { FlowEvent, FlowItem } from '../inspect/traffic-api.ts';
import { ForwardedTraffic } from './forwarded.ts';

const plan = planOf({ namespace: 'shop', portName: 'http', clusterIP: '10.96.0.10' });
const endpoint = '10.244.1.5:8080';
/** As the kernel has it: answered by the process. */
const flow = flowItem('10.244.2.9:40002', { endpoint: '192.0.2.1:31000', pod: null });
const chosen = { family: 'IPv4', key: plan.port.key, client: flow.client, endpoint } as const;

type Event = Omit<FlowEvent, 'apiVersion' | 'kind'>;

function setUp() {
  const clock = new FakeClock();
  const flows: FlowItem[] = [];
  const stream = { isWanted: (() => true) as FlowFilter, onEvent: (_event: Event) => {}, onEnd: () => {} };
  const kernel: TrafficSource = {
    figures: async () => assert.fail('nobody asks for figures'),
    openMeter: async () => ({ read: async () => [] }),
    flows: async (isWanted, write) => write(flows.filter((each) => isWanted(each, plan))),
    watch: async (isWanted, onEvent, onEnd) => {
      Object.assign(stream, { isWanted, onEvent, onEnd });
      return () => {};
    },
  };
  const process = { reports: [] as ForwardedConnections[] };
  const traffic = new ForwardedTraffic({
    feeds: [
      {
        family: 'IPv4',
        plans: plansByKey(plan),
        placements: () => ({ byEndpoint: new Map([[endpoint, { pod: 'shop/web-1' }]]), slices: [] }),
      },
    ],
    forwarded: async () => [],
    connections: async () => process.reports.shift() ?? { startsOver: false, connections: [] },
    hasRules: () => true,
    since: 0,
    kernel,
    clock,
  });
  const tell = (event: Event['event'], of: FlowItem) => {
    if (stream.isWanted(of, plan)) stream.onEvent({ time: '', event, flow: of, reason: null, count: 1 });
  };
  return { clock, flows, process, traffic, tell, stream };
}

async function watched(traffic: ForwardedTraffic, isWanted: FlowFilter = () => true) {
  const seen: unknown[] = [];
  const end = await traffic.watch(
    isWanted,
    ({ event, flow: one }) => seen.push([event, one?.endpoint, one?.pod]),
    () => {},
  );
  return { seen, end };
}

test('a flow has the endpoint that the process chose, and can be selected by it', async () => {
  const { flows, process, traffic } = setUp();
  flows.push(flow, flowItem('10.244.2.9:40003', { endpoint: '192.0.2.1:31000' }));
  const list = async (isWanted: FlowFilter) => {
    const found: FlowItem[] = [];
    await traffic.flows(isWanted, async (some) => void found.push(...some));
    return found.map((each) => [each.client, each.endpoint, each.pod]);
  };
  process.reports = [{ startsOver: true, connections: [chosen] }];
  assert.deepEqual(await list(() => true), [
    ['10.244.2.9:40002', endpoint, 'shop/web-1'],
    ['10.244.2.9:40003', null, null],
  ]);
  assert.deepEqual(await list((one) => one.endpoint === endpoint), [
    ['10.244.2.9:40002', endpoint, 'shop/web-1'],
  ]);
  process.reports = [{ startsOver: true, connections: [] }];
  assert.deepEqual(await list((one) => one.endpoint !== null), []);
});

test('an opening waits until the process has chosen an endpoint, and its end waits for it', async () => {
  const { clock, process, traffic, tell } = setUp();
  const { seen, end } = await watched(traffic);
  tell('Opened', flow);
  tell('Ended', flow);
  tell('Opened', { ...flow, client: '10.244.2.9:40003' });
  await clock.advance(100);
  assert.deepEqual(seen, []);
  process.reports = [{ startsOver: false, connections: [chosen] }];
  await clock.advance(100);
  assert.deepEqual(seen, [
    ['Opened', endpoint, 'shop/web-1'],
    ['Ended', endpoint, 'shop/web-1'],
  ]);
  await clock.advance(2_000);
  assert.deepEqual(seen.at(-1), ['Opened', null, null], 'the process reached no endpoint');
  end();
});

test('an endpoint of an earlier connection from the same port is not taken for that of a new one', async () => {
  const { clock, process, traffic, tell } = setUp();
  process.reports = [{ startsOver: true, connections: [chosen] }];
  const { seen, end } = await watched(traffic, (one) => one.endpoint !== null);
  await clock.advance(60_000);
  tell('Opened', flow);
  await clock.advance(100);
  process.reports = [{ startsOver: false, connections: [{ ...chosen, endpoint: '10.244.1.6:8080' }] }];
  await clock.advance(100);
  assert.deepEqual(seen, [['Opened', '10.244.1.6:8080', null]]);
  end();
});

test('the end of the stream passes on what was held back; who stops watching gets nothing more', async () => {
  const { clock, traffic, tell, stream } = setUp();
  const stopped = await watched(traffic);
  tell('Opened', flow);
  stopped.end();
  await clock.advance(60_000);
  assert.deepEqual(stopped.seen, []);
  const { seen } = await watched(traffic);
  tell('Opened', flow);
  stream.onEnd();
  assert.deepEqual(seen, [['Opened', null, null]]);
});
