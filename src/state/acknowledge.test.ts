import assert from 'node:assert/strict';
import { test } from 'node:test';
import { service, slice } from '../../test/cluster/objects.ts';
import { FamilyState } from './family-state.ts';
import type { Delta } from './ledger.ts';

const startTime = Date.UTC(2026, 0, 1);
const udp = [{ name: 'dns', protocol: 'UDP', port: 53 }];

function newState(): FamilyState {
  return new FamilyState({ family: 'IPv4', nodeName: 'n1', startTime, onProblem: () => {} });
}

/** One UDP slice of its own for each Service, with a trigger time that many seconds after the start. */
function change(state: FamilyState, serviceName: string, seconds: number, version = '1'): void {
  const triggerTime = new Date(startTime + seconds * 1000).toISOString();
  state.updateSlice(
    slice(serviceName, '1R@n1', { serviceName, resourceVersion: version, triggerTime, ports: udp }),
    false,
  );
}

function contents({ changed, triggerTimes }: Delta): unknown {
  const times = [...triggerTimes].map(([name, list]) => [name, list.map((t) => (t - startTime) / 1000)]);
  return { changed: [...changed].sort(), times: Object.fromEntries(times) };
}

const nothing = { changed: [], times: {} };

test('changes of an acknowledged delta are not in the next one', () => {
  const state = newState();
  change(state, 'x', 1);
  const delta = state.takeDelta();
  assert.deepEqual(contents(delta), { changed: ['a/x'], times: { 'a/x': [1] } });
  state.acknowledge(delta);
  assert.deepEqual(contents(state.takeDelta()), nothing);
});

test('a failed sync loses neither a name nor a trigger time', () => {
  const state = newState();
  change(state, 'x', 1);
  const failed = state.takeDelta();
  assert.deepEqual(contents(state.takeDelta()), contents(failed));
  state.updateService(undefined, service({ name: 'y' }));
  change(state, 'x', 2, '2');
  const retry = state.takeDelta();
  assert.deepEqual(contents(retry), {
    changed: ['a/x', 'a/y'],
    times: { 'a/x': [1, 2] },
  });
  state.acknowledge(retry);
  assert.deepEqual(contents(state.takeDelta()), nothing);
});

test('what arrives while a sync is under way is in the next delta', () => {
  const state = newState();
  change(state, 'x', 1);
  change(state, 'z', 1);
  const delta = state.takeDelta();
  change(state, 'x', 2, '2');
  change(state, 'y', 3);
  state.acknowledge(delta);
  assert.deepEqual(contents(state.takeDelta()), {
    changed: ['a/x', 'a/y'],
    times: { 'a/x': [2], 'a/y': [3] },
  });
  assert.deepEqual(contents(delta), {
    changed: ['a/x', 'a/z'],
    times: { 'a/x': [1], 'a/z': [1] },
  });
});

test('acknowledging an older delta keeps what later ones added', () => {
  const state = newState();
  change(state, 'x', 1);
  const first = state.takeDelta();
  change(state, 'x', 2, '2');
  change(state, 'y', 2);
  const second = state.takeDelta();
  state.acknowledge(first);
  assert.deepEqual(contents(state.takeDelta()), {
    changed: ['a/x', 'a/y'],
    times: { 'a/x': [2], 'a/y': [2] },
  });
  state.acknowledge(second);
  state.acknowledge(first);
  assert.deepEqual(contents(state.takeDelta()), nothing);
});

test('a removal after a failed sync discards the trigger times and keeps the rest', () => {
  const state = newState();
  change(state, 'x', 1);
  state.takeDelta();
  state.updateSlice(slice('x', '', { serviceName: 'x' }), true);
  assert.deepEqual(contents(state.takeDelta()), { changed: ['a/x'], times: {} });
});

test('a Service that came and went over failed syncs is still reported', () => {
  const state = newState();
  const object = service();
  state.updateService(undefined, object);
  state.takeDelta();
  state.updateService(object, undefined);
  assert.deepEqual(contents(state.takeDelta()), { ...nothing, changed: ['a/web'] });
});
