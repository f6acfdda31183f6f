import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Family } from '../../src/model/ip.ts';
import type { EndpointSliceObject, ServiceObject } from '../../src/model/objects.ts';
import { type PlanContext, planServicePort } from '../../src/plan/plan.ts';
import { Planner } from '../../src/plan/planner.ts';
import { FamilyState } from '../../src/state/family-state.ts';
import { numbers, service, slice } from '../cluster/objects.ts';
import { endpointsOf, portsOf } from './state-queries.ts';
import { timeSlice } from './time-slice.ts';

/** Makes the plan of the only service port of these objects, for one node. */
async function run(
  object: ServiceObject,
  slices: readonly EndpointSliceObject[],
  {
    family = 'IPv4',
    nodeName = 'n1',
    zone = 'za',
  }: { family?: Family; nodeName?: string; zone?: string } = {},
) {
  const state = new FamilyState({ family, nodeName, startTime: 0, onProblem: () => {} });
  state.updateService(undefined, object);
  for (const one of slices) state.updateSlice(one, false);
  const context: PlanContext = { nodeName, zone, allowExternalIPs: true };
  const planner = new Planner();
  await planner.apply(state.takeDelta().changed, state, context, timeSlice());
  const [key] = planner.plans.keys();
  assert.ok(key !== undefined);
  const port = portsOf(state).get(key);
  assert.ok(port);
  return { state, planner, plan: planServicePort(port, endpointsOf(state, key), context) };
}

const nodePortLocal = service({ type: 'NodePort', externalTrafficPolicy: 'Local' }, [{ nodePort: 31000 }]);

test('a plain ClusterIP Service uses its ready endpoints', async () => {
  const { plan } = await run(service(), [slice('s', '1R@n1 2R@n2 3X@n2')]);
  assert.deepEqual(
    [numbers(plan.cluster), numbers(plan.all), plan.usesLocalEndpoints],
    ['1 2', '1 2', false],
  );
  assert.equal(plan.hasAnyEndpoints, true);
});

test('endpoints are sorted and duplicates merged', async () => {
  for (const [one, two] of [
    ['s1', 's2'],
    ['s2', 's1'],
  ] as const) {
    const { plan } = await run(service(), [slice(one, '10T@n1 1R@n1'), slice(two, '10R@n1')]);
    assert.deepEqual(
      plan.cluster.map(({ id, ready }) => [id, ready]),
      [
        ['10.1.0.10:80', true],
        ['10.1.0.1:80', true],
      ],
    );
  }
});

test('external policy Local without local endpoints drops outside traffic', async () => {
  const lb = service(
    {
      type: 'LoadBalancer',
      externalTrafficPolicy: 'Local',
      loadBalancerIngress: [{ ip: '192.0.2.7' }],
      healthCheckNodePort: 32100,
    },
    [{ nodePort: 31000 }],
  );
  const { state, planner, plan } = await run(lb, [slice('s', '2R@n2')]);
  assert.deepEqual([numbers(plan.cluster), numbers(plan.local), numbers(plan.all)], ['2', '', '2']);
  assert.deepEqual([plan.internal.action, plan.external.action], ['forward', 'drop']);
  assert.deepEqual(planner.noLocalEndpoints, { internal: 0, external: 1 });
  assert.deepEqual(
    [state.healthCheckPorts().get('a/web'), state.localReadyCounts().get('a/web')],
    [32100, undefined],
  );
});

test('internal policy Local narrows internal traffic only', async () => {
  const local = service({ internalTrafficPolicy: 'Local' });
  const { plan, planner } = await run(local, [slice('s', '2R@n2')]);
  assert.deepEqual([plan.usesClusterEndpoints, numbers(plan.all), plan.hasAnyEndpoints], [false, '', true]);
  assert.equal(plan.internal.action, 'drop');
  assert.deepEqual(planner.noLocalEndpoints, { internal: 1, external: 0 });
  assert.equal((await run(local, [])).plan.internal.action, 'reject');
});

test('zone hints choose the endpoints of this zone', async () => {
  const hinted = [slice('s', '1R@n1/za 2R@n2/zb 3X@n2')];
  assert.equal(numbers((await run(service(), hinted)).plan.cluster), '1');
  assert.equal((await run(service(), hinted)).plan.topology.mode, 'PreferSameZone');
  const vetoed = (await run(service(), [slice('s', '1R@n1/za 2R@n2/zb 3R@n2')])).plan;
  assert.deepEqual([vetoed.topology.mode, numbers(vetoed.cluster)], ['none', '1 2 3']);
  const elsewhere = (await run(service(), hinted, { zone: 'zc' })).plan;
  assert.deepEqual([elsewhere.topology.mode, numbers(elsewhere.cluster)], ['none', '1 2']);
});

test('node hints choose the endpoints of this node', async () => {
  const hinted = [slice('s', '1R@n2/za!n2 2R@n3/zb!n3')];
  const here = (await run(service(), hinted)).plan;
  assert.deepEqual([here.topology.mode, numbers(here.cluster)], ['PreferSameZone', '1']);
  const there = (await run(service(), hinted, { nodeName: 'n3', zone: 'zb' })).plan;
  assert.deepEqual([there.topology.mode, numbers(there.cluster)], ['PreferSameNode', '2']);
});

test('terminating endpoints are used when no endpoint is ready, separately for each list', async () => {
  const { plan, state } = await run(nodePortLocal, [slice('s', '1T@n1 2R@n2 3T@n2')]);
  assert.deepEqual([numbers(plan.cluster), numbers(plan.local), numbers(plan.all)], ['2', '1', '1 2']);
  assert.equal(state.localReadyCounts().get('a/web'), undefined);
});

test('topology hints do not narrow the list of local endpoints', async () => {
  const { plan } = await run(nodePortLocal, [slice('s', '1R@n1/zb 2R@n2/za')]);
  assert.deepEqual(
    [plan.topology.mode, numbers(plan.cluster), numbers(plan.local)],
    ['PreferSameZone', '2', '1'],
  );
  assert.equal(numbers(plan.all), '1 2');
});

test('source ranges are split by family', async () => {
  const ranges = async (loadBalancerSourceRanges: string[], family: Family) => {
    const { plan } = await run(service({ type: 'LoadBalancer', loadBalancerSourceRanges }), [], { family });
    return plan.port.sourceRanges;
  };
  assert.deepEqual(await ranges([' 203.0.113.5/24 ', 'bogus'], 'IPv4'), ['203.0.113.0/24']);
  assert.deepEqual(await ranges([' 203.0.113.5/24 ', 'bogus'], 'IPv6'), []);
  assert.deepEqual(await ranges([' 203.0.113.5/24 ', 'bogus', '0.0.0.0/0'], 'IPv4'), []);
});

test('ipMode and the type of a Service decide which addresses are served', async () => {
  const object = service({
    loadBalancerIngress: [
      { ip: '192.0.2.1', ipMode: 'Proxy' },
      { ip: '192.0.2.2' },
      { ip: '' },
      { ip: '2001:db8::2', ipMode: 'VIP' },
    ],
  });
  assert.deepEqual((await run(object, [])).plan.port.loadBalancerVIPs, ['192.0.2.2']);
  assert.deepEqual((await run(object, [], { family: 'IPv6' })).plan.port.loadBalancerVIPs, ['2001:db8::2']);
});

test('after an annotation edit the delta lists the Service, but endpoints and plan stay the same', async () => {
  const { state, planner } = await run(service(), [slice('s', '1R@n1')]);
  state.acknowledge(state.takeDelta());
  const [key = ''] = planner.plans.keys();
  const before = { plan: planner.plans.get(key), endpoints: endpointsOf(state, key) };
  assert.equal(state.updateSlice(slice('s', '1R@n1', { resourceVersion: '2' }), false), true);
  const delta = state.takeDelta();
  assert.deepEqual([...delta.changed], ['a/web']);
  assert.equal(endpointsOf(state, key), before.endpoints);
  const keys = await planner.apply(
    delta.changed,
    state,
    { nodeName: 'n1', zone: 'za', allowExternalIPs: true },
    timeSlice(),
  );
  assert.equal(keys.size, 0);
  assert.equal(planner.plans.get(key), before.plan);
});

test('a dual-stack Service with a slice of one family is rejected in the other family', async () => {
  const slices = [slice('s', '1R@n1')];
  const ipv4 = (await run(service(), slices)).plan;
  assert.deepEqual([ipv4.port.clusterIP, ipv4.internal.action], ['10.96.0.1', 'forward']);
  const ipv6 = (await run(service(), slices, { family: 'IPv6' })).plan;
  assert.deepEqual([ipv6.port.clusterIP, ipv6.internal.action], ['fd00:96::1', 'reject']);
});

test('with a node name that no endpoint has and without a zone, no endpoint is local and hints are ignored', async () => {
  const { plan } = await run(nodePortLocal, [slice('s', '1R@n1/za 2R@n2/zb')], {
    nodeName: 'n1.example.com',
    zone: '',
  });
  assert.deepEqual([numbers(plan.cluster), numbers(plan.local), plan.topology.mode], ['1 2', '', 'none']);
});
