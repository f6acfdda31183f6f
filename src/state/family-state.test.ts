import assert from 'node:assert/strict';
import { test } from 'node:test';
import { numbers, service, slice, webPort } from '../../test/cluster/objects.ts';
import { endpointsOf, portsOf } from '../../test/plan/state-queries.ts';
import { describeProblem } from '../model/object-problem.ts';
import type { EndpointSliceObject, ServiceObject } from '../model/objects.ts';
import { packNames } from '../model/pod-names.ts';
import { FamilyState } from './family-state.ts';

const startTime = Date.UTC(2026, 0, 1);
const later = '2026-01-01T00:00:05Z';
const dns = [{ name: 'dns', protocol: 'UDP', port: 53 }];

function newState(): { state: FamilyState; problems: string[] } {
  const problems: string[] = [];
  const onProblem = (problem: Parameters<typeof describeProblem>[0]) =>
    problems.push(describeProblem(problem));
  return { state: new FamilyState({ family: 'IPv4', nodeName: 'n1', startTime, onProblem }), problems };
}

/** Takes and acknowledges a delta; returns the changed names. */
function sync(state: FamilyState): string[] {
  const delta = state.takeDelta();
  state.acknowledge(delta);
  return [...delta.changed].sort();
}

const edit = <T extends ServiceObject | EndpointSliceObject>(
  object: T,
  fields: Partial<T>,
  version = '2',
): T => ({
  ...object,
  resourceVersion: version,
  ...fields,
});

test('objects are visible only after takeDelta', () => {
  const { state } = newState();
  assert.equal(state.updateService(undefined, service()), true);
  assert.equal(state.updateSlice(slice('s', '1R@n1'), false), true);
  assert.equal(portsOf(state).size, 0);
  assert.equal(state.totalEndpoints, 0);
  assert.deepEqual([state.pendingServices, state.pendingSlices], [1, 1]);
  assert.deepEqual([...state.takeDelta().changed], ['a/web']);
  assert.deepEqual([...portsOf(state).keys()], ['a/web:http/TCP']);
  assert.equal(numbers(endpointsOf(state, 'a/web:http/TCP')), '1');
  assert.deepEqual([state.pendingServices, state.pendingSlices, state.totalEndpoints], [0, 0, 1]);
});

test('a Service event is pending only if it changes a service port', () => {
  const np = (nodePort: number) => service({}, [{ nodePort }]);
  const rows: readonly {
    readonly name: string;
    /** Objects in the order they arrive, from what was synced before; undefined is a deletion. */
    readonly events: readonly (ServiceObject | undefined)[];
    readonly changed: boolean;
  }[] = [
    { name: 'unchanged', events: [service()], changed: false },
    { name: 'a field that is not kept', events: [edit(service(), {})], changed: false },
    { name: 'a node port', events: [np(30000)], changed: true },
    { name: 'there and back', events: [np(30000), service()], changed: false },
    { name: 'several edits', events: [np(30000), np(30001), np(30002)], changed: true },
    { name: 'deleted', events: [undefined], changed: true },
    { name: 'deleted and made again', events: [undefined, service()], changed: false },
    { name: 'turned headless', events: [service({ clusterIP: 'None' })], changed: true },
    { name: 'turned into an ExternalName', events: [service({ type: 'ExternalName' })], changed: true },
    { name: 'one more port', events: [service({}, [{}, { name: 'b' }])], changed: true },
    {
      name: 'lost its family',
      events: [service({ ipFamilies: ['IPv6'], clusterIPs: ['fd00::1'] })],
      changed: true,
    },
  ];
  for (const { name, events, changed } of rows) {
    const { state } = newState();
    state.updateService(undefined, service());
    sync(state);
    let previous: ServiceObject | undefined = service();
    let needed = false;
    for (const object of events) {
      needed = state.updateService(previous, object);
      previous = object;
    }
    assert.equal(needed, changed, name);
    assert.equal(state.pendingServices, changed ? 1 : 0, name);
    assert.deepEqual(sync(state), changed ? ['a/web'] : [], name);
  }
});

test('a service made, edited and deleted between two syncs leaves no work', () => {
  const { state } = newState();
  const first = service();
  const second = service({}, [{ nodePort: 30000 }]);
  assert.equal(state.updateService(undefined, first), true);
  assert.equal(state.updateService(first, second), true);
  assert.equal(state.updateService(second, undefined), false);
  assert.deepEqual(sync(state), []);
});

test('an event that changes nothing still asks for a sync while others wait', () => {
  const { state } = newState();
  const other = service({ name: 'other' });
  state.updateService(undefined, other);
  sync(state);
  state.updateService(undefined, service());
  assert.equal(state.updateService(other, other), true);
  assert.equal(state.updateService(undefined, undefined), true);
});

test('service ports are added and removed, and unchanged ones keep their identity', () => {
  const { state } = newState();
  const first = service({}, [{ name: 'a' }, { name: 'b' }]);
  const second = service({}, [{ name: 'b' }, { name: 'c' }]);
  state.updateService(undefined, first);
  sync(state);
  const b = portsOf(state).get('a/web:b/TCP');
  const reordered = service({}, [{ name: 'b' }, { name: 'a' }]);
  assert.equal(state.updateService(first, reordered), false, 'order says nothing');
  state.updateService(reordered, second);
  sync(state);
  assert.deepEqual([...portsOf(state).keys()].sort(), ['a/web:b/TCP', 'a/web:c/TCP']);
  assert.equal(portsOf(state).get('a/web:b/TCP'), b, 'an unchanged port keeps its identity');
  state.updateService(second, undefined);
  sync(state);
  assert.equal(portsOf(state).size, 0);
  assert.deepEqual([...state.serviceNames()], []);
});

test('any write of a slice of this family is a change, a repetition is not', () => {
  const base = slice('s', '1R@n1');
  const rows: readonly {
    readonly name: string;
    readonly event: EndpointSliceObject;
    readonly removed?: boolean;
    readonly changed: boolean;
    readonly left: string;
  }[] = [
    { name: 'a resync', event: base, changed: false, left: '1' },
    { name: 'a relist', event: structuredClone(base), changed: false, left: '1' },
    { name: 'a write that touches nothing kept', event: edit(base, {}), changed: true, left: '1' },
    { name: 'other pods', event: { ...base, pods: 'x' }, changed: false, left: '1' },
    { name: 'another endpoint', event: edit(base, slice('s', '1R@n1 2R@n2')), changed: true, left: '1 2' },
    { name: 'an edit without a new version', event: slice('s', '2R@n1'), changed: true, left: '2' },
    { name: 'removed', event: base, removed: true, changed: true, left: '' },
    {
      name: 'a removal of an unknown slice',
      event: slice('t', ''),
      removed: true,
      changed: false,
      left: '1',
    },
    { name: 'a new slice', event: slice('t', '3R@n1'), changed: true, left: '1 3' },
    {
      name: 'the other family',
      event: slice('t', '3R@', { addressType: 'IPv6' }),
      changed: false,
      left: '1',
    },
    {
      name: 'another address type',
      event: slice('t', '3R@', { addressType: 'FQDN' }),
      changed: false,
      left: '1',
    },
    { name: 'no service label', event: slice('t', '3R@', { serviceName: '' }), changed: false, left: '1' },
    { name: 'the label is gone', event: edit(base, { serviceName: '' }), changed: true, left: '' },
  ];
  for (const { name, event, removed = false, changed, left } of rows) {
    const { state } = newState();
    state.updateService(undefined, service());
    state.updateSlice(base, false);
    sync(state);
    assert.equal(state.updateSlice(event, removed), changed, name);
    assert.equal(state.pendingSlices, changed ? 1 : 0, name);
    assert.deepEqual(sync(state), changed ? ['a/web'] : [], name);
    assert.equal(numbers(endpointsOf(state, 'a/web:http/TCP')), left, name);
  }
});

test('a pod with another name is shown without a sync', () => {
  const { state } = newState();
  const named = (pod: string) => ({ ...slice('s', '1R@n1'), pods: packNames([pod]) ?? '' });
  const podOf = () => state.placements(webPort()).byEndpoint.get('10.1.0.1:80')?.pod;
  state.updateService(undefined, service());
  state.updateSlice(named('web-1'), false);
  sync(state);
  assert.equal(podOf(), 'a/web-1');
  assert.equal(state.updateSlice(named('web-2'), false), false);
  assert.equal(podOf(), 'a/web-2');
  assert.deepEqual(sync(state), []);
});

test('a slice is compared with its pending version first', () => {
  const { state } = newState();
  const first = slice('s', '1R@n1');
  const second = edit(first, slice('s', '2R@n1'));
  assert.equal(state.updateSlice(first, false), true);
  assert.equal(state.updateSlice(structuredClone(first), false), false);
  assert.equal(state.updateSlice(second, false), true);
  assert.equal(state.updateSlice(second, true), true);
  assert.equal(state.updateSlice(second, true), false);
  assert.equal(state.pendingSlices, 3);
  assert.deepEqual(sync(state), []);
});

test('a slice with a new service name moves to that Service', () => {
  const { state } = newState();
  state.updateService(undefined, service());
  state.updateService(undefined, service({ name: 'other' }));
  const object = slice('s', '1R@n1');
  state.updateSlice(object, false);
  sync(state);
  assert.equal(state.updateSlice(edit(object, { serviceName: 'other' }), false), true);
  assert.deepEqual(sync(state), ['a/other', 'a/web']);
  assert.equal(numbers(endpointsOf(state, 'a/web:http/TCP')), '');
  assert.equal(numbers(endpointsOf(state, 'a/other:http/TCP')), '1');
});

test('endpoints are served when their Service arrives after them', () => {
  const { state } = newState();
  state.updateSlice(slice('s', '1R@n1'), false);
  sync(state);
  assert.equal(state.totalEndpoints, 0);
  state.updateService(undefined, service());
  assert.deepEqual(sync(state), ['a/web']);
  assert.equal(numbers(endpointsOf(state, 'a/web:http/TCP')), '1');
  assert.equal(state.totalEndpoints, 1);
});

test('endpoints belong to the port of their name and protocol', () => {
  const { state } = newState();
  state.updateService(
    undefined,
    service({}, [{}, { name: 'dns', protocol: 'UDP', port: 53 }, { name: 'dns', port: 53 }]),
  );
  state.updateSlice(slice('s', '1R@n1'), false);
  state.updateSlice(slice('t', '2R@n1', { ports: dns }), false);
  sync(state);
  assert.equal(numbers(endpointsOf(state, 'a/web:http/TCP')), '1');
  assert.equal(numbers(endpointsOf(state, 'a/web:dns/UDP')), '2');
  assert.equal(numbers(endpointsOf(state, 'a/web:dns/TCP')), '');
  assert.equal(numbers(endpointsOf(state, 'a/none/TCP')), '');
});

test('an endpoint in two slices stays when one of them is removed', () => {
  const { state } = newState();
  state.updateService(undefined, service());
  const one = slice('one', '1T@n1 2R@n1');
  const two = slice('two', '1R@n1');
  state.updateSlice(one, false);
  state.updateSlice(two, false);
  sync(state);
  const first = () => endpointsOf(state, 'a/web:http/TCP').find(({ ip }) => ip === '10.1.0.1');
  assert.equal(first()?.terminating, false);
  state.updateSlice(two, true);
  sync(state);
  assert.equal(first()?.terminating, true, 'the record behind it comes up');
  state.updateSlice(two, false);
  sync(state);
  assert.equal(first()?.terminating, false);
  state.updateSlice(one, true);
  sync(state);
  assert.equal(numbers(endpointsOf(state, 'a/web:http/TCP')), '1');
});

test('an endpoint in two of three slices stays when one of them is removed', () => {
  const { state } = newState();
  state.updateService(undefined, service());
  const two = slice('two', '1R@n1');
  for (const object of [slice('one', '1T@n1'), two, slice('three', '2R@n1')])
    state.updateSlice(object, false);
  sync(state);
  const terminating = () => endpointsOf(state, 'a/web:http/TCP').map((endpoint) => endpoint.terminating);
  assert.deepEqual(terminating(), [false, false]);
  state.updateSlice(two, true);
  sync(state);
  assert.deepEqual(terminating(), [true, false]);
});

test('health check ports and local ready counts follow Services and slices', () => {
  const { state } = newState();
  const lb = { type: 'LoadBalancer', externalTrafficPolicy: 'Local', healthCheckNodePort: 32100 };
  const object = service(lb, [
    { name: 'http', port: 80 },
    { name: 'https', port: 443 },
  ]);
  const ports = [
    { name: 'http', protocol: 'TCP', port: 80 },
    { name: 'https', protocol: 'TCP', port: 443 },
  ];
  const endpoints = slice('s', '1R@n1 4T@n1 5R@n2', { ports });
  state.updateService(undefined, object);
  state.updateSlice(endpoints, false);
  sync(state);
  assert.deepEqual([...state.healthCheckPorts()], [['a/web', 32100]]);
  assert.deepEqual([...state.localReadyCounts()], [['a/web', 1]], 'two ports, one ready address');
  state.updateSlice(edit(endpoints, { endpoints: slice('s', '1R@n1 2R@n1 5R@n2').endpoints }), false);
  sync(state);
  assert.deepEqual([...state.localReadyCounts()], [['a/web', 2]]);
  state.updateSlice(endpoints, true);
  state.updateService(object, undefined);
  sync(state);
  assert.deepEqual([...state.healthCheckPorts(), ...state.localReadyCounts()], []);
});

test('trigger times are kept for changes after the start and dropped by a removal', () => {
  const { state, problems } = newState();
  const at = (seconds: string, version: string) =>
    slice('s', '1R@n1', { resourceVersion: version, triggerTime: `2026-01-01T00:00:${seconds}Z` });
  state.updateSlice(at('05', '1'), false);
  state.updateSlice(at('05', '1'), false);
  state.updateSlice(at('06.5', '2'), false);
  state.updateSlice(slice('t', '2R@n1', { triggerTime: '2025-12-31T23:59:59Z' }), false);
  state.updateSlice(slice('u', '3R@n1', { triggerTime: '2026-01-01T00:00:00Z' }), false);
  state.updateSlice(slice('v', '4R@n1'), false);
  const delta = state.takeDelta();
  assert.deepEqual([...delta.triggerTimes], [['a/web', [startTime + 5000, startTime + 6500]]]);
  state.acknowledge(delta);
  assert.deepEqual(problems, []);

  state.updateSlice(at('07', '3'), false);
  state.updateSlice(slice('t', ''), true);
  state.updateSlice(at('08', '4'), false);
  state.updateSlice(slice('unknown', ''), true);
  assert.deepEqual([...state.takeDelta().triggerTimes], [['a/web', [startTime + 8000]]]);
});

test('a relabelled slice drops the trigger times of its old Service', () => {
  const { state } = newState();
  state.updateSlice(slice('s', '1R@n1', { triggerTime: later }), false);
  state.updateSlice(slice('s', '1R@n1', { triggerTime: later, serviceName: 'other' }), false);
  assert.deepEqual([...state.takeDelta().triggerTimes.keys()], ['a/other']);
});

test('a problem is reported once, when its object arrives', () => {
  const { state, problems } = newState();
  const bad = service({ externalIPs: ['bogus'] });
  state.updateService(undefined, bad);
  sync(state);
  state.updateService(bad, bad);
  state.updateSlice(slice('s', '1R@n1', { triggerTime: 'yesterday' }), false);
  state.updateSlice(slice('t', '1R@n1', { serviceName: '' }), false);
  state.updateSlice(slice('u', '1R@n1', { serviceName: '', addressType: 'IPv6' }), false);
  // A removed slice is no problem.
  state.updateSlice(slice('t', '1R@n1', { serviceName: '' }), true);
  assert.deepEqual(problems, [
    'Service a/web: spec.externalIPs[0]: "bogus" is not an IP address',
    'EndpointSlice a/s: metadata.annotations[endpoints.kubernetes.io/last-change-trigger-time]: "yesterday" is not an RFC 3339 time',
    'EndpointSlice a/t: metadata.labels[kubernetes.io/service-name]: "" names no Service',
  ]);
});

test('slice events of this family are counted, changes or not', () => {
  const { state } = newState();
  state.updateSlice(slice('s', '1R@n1'), false);
  state.updateSlice(slice('s', '1R@n1'), false);
  state.updateSlice(slice('s', '1R@n1'), true);
  state.updateSlice(slice('t', '1R@n1', { addressType: 'IPv6' }), false);
  state.updateSlice(slice('u', '1R@n1', { serviceName: '' }), false);
  assert.equal(state.sliceEvents, 3);
});

test('a large load can be applied in steps', () => {
  const { state } = newState();
  for (let i = 0; i < 5; i++) {
    state.updateService(undefined, service({ name: `s${i}` }));
    state.updateSlice(slice(`s${i}`, '1R@n1 2R@n2', { serviceName: `s${i}` }), false);
  }
  let steps = 1;
  while (state.applyPending(2)) steps++;
  assert.equal(steps, 3);
  assert.deepEqual([state.pendingServices, state.pendingSlices, state.totalEndpoints], [0, 0, 10]);
  assert.deepEqual([...state.takeDelta().changed].sort(), ['a/s0', 'a/s1', 'a/s2', 'a/s3', 'a/s4']);
});
