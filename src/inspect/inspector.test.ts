import assert from 'node:assert/strict';
import { test } from 'node:test';
import { planOf, plansByKey } from '../../test/cluster/plans.ts';
import { FakeClock } from '../../test/fake-clock.ts';
import { idle, inspection, testInspector } from '../../test/inspected-proxy.ts';
import type { Difference, KernelAnswer } from '../backends/inspection.ts';
import type { PacketRules } from '../backends/packet-rules.ts';
import { type Problem, STARTING } from '../model/problem.ts';
import type { Balance } from '../model/service-port.ts';
import { readAffinityQuestion } from './affinity.ts';
import { type InspectorOptions, NotReadyError } from './inspector.ts';
import { QuestionError, readQuestion } from './question.ts';
import type { TrafficSource } from './traffic.ts';

const here = { ip: '10.244.1.21', local: true };
const there = { ip: '10.244.2.21' };
const gone = { ip: '10.244.2.22', state: 'gone' as const };
const web = planOf({ clusterIP: '10.96.0.1', internalPolicyLocal: true, nodePort: 30_080 }, [
  here,
  there,
  gone,
]);
const api = planOf({ clusterIP: '10.96.0.2', namespace: 'shop', name: 'api', portName: 'grpc' });
const plans = plansByKey(web, api);

function question(destination: string) {
  const params: Record<string, string> = { source: '10.244.1.9', destination, port: '80' };
  return readQuestion((name) => params[name] ?? null);
}

const toHere: KernelAnswer = {
  fate: {
    action: 'forward',
    targets: [{ endpoint: '10.244.1.21:8080', probability: 1, masquerade: false }],
    affinitySeconds: 0,
  },
  lookedAt: 'table ip kube-proxy',
  evidence: ['service-ips { 10.96.0.1 . tcp . 80 : goto web }'],
};

test('status has the last sync, failure and repair, with times in RFC 3339', () => {
  const clock = new FakeClock(Date.UTC(2026, 0, 1));
  const activity = {
    ...idle(),
    lastSync: { finishedAt: clock.now(), durationMs: 12.3456, kind: 'partial', changed: 2 },
    failures: 1,
    lastFailure: { at: clock.now() - 5_000, message: 'ENOBUFS' },
    repairs: 3,
    lastRepair: { at: clock.now() - 1_000, by: 'nft[42]', changes: 'rule deleted: 3' },
  } as const;
  const status = testInspector({ plans, activity }, clock).status();
  assert.deepEqual([status.kind, status.healthy, status.time], ['Status', true, '2026-01-01T00:00:00.000Z']);
  assert.deepEqual(status.families, [
    {
      family: 'IPv4',
      healthy: true,
      initialised: true,
      nodeIP: '192.0.2.5',
      servicePorts: 2,
      endpoints: 3,
      serviceCIDRs: ['10.96.0.0/16'],
      pending: { services: 0, endpointSlices: 0 },
      syncs: 1,
      lastSync: {
        time: '2026-01-01T00:00:00.000Z',
        seconds: 0.012346,
        kind: 'partial',
        changedServicePorts: 2,
      },
      failures: 1,
      lastFailure: { time: '2025-12-31T23:59:55.000Z', message: 'ENOBUFS' },
      repairs: 3,
      lastRepair: '2025-12-31T23:59:59.000Z',
      lastRepairCause: { by: 'nft[42]', changes: 'rule deleted: 3' },
      fastPath: null,
    },
  ]);
});

test('the state follows from the problems: an outage, a start, anything else', () => {
  const problem = (parts: Partial<Problem>): Problem => ({
    kind: 'Any',
    isOutage: false,
    text: 'x',
    ...parts,
  });
  const outage = problem({ family: 'IPv4', isOutage: true });
  const cases: [Problem[], string, boolean][] = [
    [[], 'healthy', true],
    [[problem({})], 'degraded', true],
    [[problem({}), problem({ kind: STARTING })], 'starting', true],
    [[problem({ kind: STARTING }), outage], 'unhealthy', false],
    [[problem({ family: 'IPv6', isOutage: true })], 'unhealthy', true],
  ];
  for (const [problems, state, isFamilyHealthy] of cases) {
    const status = testInspector({}, new FakeClock(), { problems: () => problems }).status();
    assert.deepEqual([status.state, status.families[0]?.healthy], [state, isFamilyHealthy]);
    assert.equal(status.healthy, state !== 'unhealthy');
    assert.equal(status.problems.length, problems.length);
  }
});

test('services carry the decisions and their reasons', async () => {
  const services = [...(await testInspector({ plans }, new FakeClock()).services())];
  const [first, second] = services;
  assert.deepEqual(first?.internal, {
    action: 'forward',
    endpoints: 'local',
    reason: 'internalTrafficPolicy is Local; 1 ready endpoint on node n1',
  });
  assert.equal(first?.external?.reason, 'externalTrafficPolicy is Cluster; 2 of 3 endpoints used: ready');
  assert.deepEqual(first?.endpoints, { known: 3, cluster: 2, local: 1 });
  assert.deepEqual(second?.internal, { action: 'reject', reason: 'there are no endpoints' });
  assert.equal(second?.external, null);
});

test('endpoints carry the reason why they take traffic or do not', async () => {
  const endpoints = [...(await testInspector({ plans }, new FakeClock()).endpoints({ name: 'web' }))];
  assert.deepEqual(
    endpoints.map(({ endpoint, usedBy, reason }) => [endpoint, usedBy.join(), reason]),
    [
      ['10.244.1.21:8080', 'cluster,local', 'used under policy Cluster and Local'],
      ['10.244.2.21:8080', 'cluster', 'used under policy Cluster'],
      ['10.244.2.22:8080', '', 'terminating and no longer serving'],
    ],
  );
});

test('endpoints have their share of each set: equal ones, those of a hash, or equal ones where the kernel hashes', async () => {
  const slots = async (balance: Balance, rules: Partial<PacketRules> = {}) => {
    const plan = planOf({ clusterIP: '10.96.0.1', externalPolicyLocal: true, nodePort: 30_080, balance }, [
      here,
      there,
      gone,
    ]);
    const inspector = testInspector({ plans: plansByKey(plan), rules }, new FakeClock());
    const shares = [...(await inspector.endpoints())].map(({ expectedShares }) => expectedShares);
    return shares.map(
      (share) => share && Object.entries(share).map(([set, part]) => `${set} ${(part * 509).toFixed(1)}`),
    );
  };
  const equal = [['cluster 254.5', 'local 509.0'], ['cluster 254.5'], undefined];
  assert.deepEqual(await slots('default'), equal);
  assert.deepEqual(await slots('hash'), [['cluster 255.0', 'local 509.0'], ['cluster 254.0'], undefined]);
  assert.deepEqual(await slots('hash', { hashScheduler: 'mh' }), equal);
});

test('an explanation has the planned fate and that of the kernel, which agree', async () => {
  const kernel = inspection({ ask: async () => toHere });
  const report = await testInspector({ plans, kernel }, new FakeClock()).explain(question('10.96.0.1'));
  assert.equal(report.planned.service, 'default/web/TCP');
  assert.deepEqual(report.planned.fate, toHere.fate);
  assert.deepEqual(report.kernel, toHere);
  assert.deepEqual([report.differences, report.kernelUnknown], [[], null]);
  assert.deepEqual(report.packet.origin, { interface: 'eth0' });
});

test('an explanation names the differences when the kernel disagrees', async () => {
  const report = await testInspector({ plans }, new FakeClock()).explain(question('10.96.0.1'));
  assert.equal(report.differences.length, 1);
});

test('a packet is explained from the plans when the kernel does not answer, with the reason', async () => {
  const failing = inspection({
    ask: async () => {
      throw new Error('EPERM');
    },
  });
  for (const [kernel, reason] of [
    ['no means to look', 'no means to look'],
    [failing, 'EPERM'],
  ] as const) {
    const report = await testInspector({ plans, kernel }, new FakeClock()).explain(question('10.96.0.1'));
    assert.deepEqual([report.kernel, report.kernelUnknown, report.differences], [null, reason, []]);
    assert.equal(report.planned.fate.action, 'forward');
  }
});

test('a packet is not explained for a family that is not served, or before the first plans', async () => {
  const clock = new FakeClock();
  await assert.rejects(
    testInspector({ plans }, clock).explain({ ...question('10.96.0.1'), family: 'IPv6' }),
    QuestionError,
  );
  const early = testInspector({ plans, isInitialised: false }, clock);
  await assert.rejects(early.explain(question('10.96.0.1')), NotReadyError);
  assert.match((await early.compare()).head.families[0]?.error ?? '', /have not been listed yet/);
});

test('a comparison gets a copy of the plans, and its differences name their family', async () => {
  const clock = new FakeClock();
  const found: Difference = { service: undefined, kind: 'chain', object: 'x', wanted: 'y', found: undefined };
  let wanted: unknown;
  const kernel = inspection({
    compare: async (request) => {
      wanted = request;
      return [found];
    },
  });
  const { head, items } = await testInspector({ plans, kernel }, clock).compare();
  assert.deepEqual(wanted, {
    plans: new Map(plans),
    serviceCIDRs: ['10.96.0.0/16'],
    totalEndpoints: 3,
    departed: undefined,
  });
  assert.deepEqual(head.families, [{ family: 'IPv4', error: null, settled: true, differences: 1 }]);
  assert.deepEqual([...items], [{ ...found, service: null, family: 'IPv4' }]);
});

test('bindings of affinity are asked for only of Services that have it, and errors are told by family', async () => {
  const sticky = planOf({ clusterIP: '10.96.0.3', namespace: 'shop', name: 'cart', affinitySeconds: 600 });
  const asked: string[][] = [];
  const question = (name: string) => readAffinityQuestion((field) => (field === 'name' ? name : null));
  const kernel = inspection({
    bindings: async (plans, sink) => {
      asked.push(plans.map(({ port }) => port.name));
      sink.add({
        service: sticky.port.key,
        client: '10.0.0.1',
        endpoint: '10.244.1.21:8080',
        secondsLeft: 7,
      });
    },
  });
  const inspector = testInspector({ plans: plansByKey(web, api, sticky), kernel }, new FakeClock());
  const { head, items } = await inspector.affinity(question(''));
  assert.deepEqual(asked, [['cart']]);
  assert.deepEqual([head.leftOut, head.families], [0, [{ family: 'IPv4', error: null }]]);
  assert.deepEqual(
    [...items].map(({ client, secondsLeft, frontend }) => [client, secondsLeft, frontend]),
    [['10.0.0.1', 7, null]],
  );
  assert.deepEqual([...(await inspector.affinity(question('shop/api'))).items], []);
  assert.equal(asked.length, 1);
  const blind = testInspector({ plans: plansByKey(sticky), kernel: 'no CAP_NET_ADMIN' }, new FakeClock());
  const { families } = (await blind.affinity(question(''))).head;
  assert.deepEqual(families, [{ family: 'IPv4', error: 'no CAP_NET_ADMIN' }]);
});

test('what is not counted of the traffic is a warning, and no figures at all are an error', async () => {
  const clock = new FakeClock();
  const warning = 'refused connections are not counted: no log here';
  const lookWith = async (traffic: InspectorOptions['traffic']) => {
    const inspector = testInspector({}, clock, traffic && { traffic });
    return (await inspector.traffic({ by: 'service' })).head.families;
  };
  const counting: TrafficSource = {
    figures: async () => ({ items: [], since: 0, lostEvents: 0, leftOut: 0, warning }),
    openMeter: async () => ({ read: async () => [] }),
    flows: async () => {},
    watch: async () => () => {},
  };
  assert.deepEqual(await lookWith(async () => counting), [{ family: 'IPv4', error: null, warning }]);
  const [none] = await lookWith(undefined);
  assert.deepEqual([none?.error, none?.warning], ['traffic is told by a running proxy only', null]);
});
