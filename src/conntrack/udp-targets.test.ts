import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type UDPFlow, type UDPTarget, UDPTargets } from './udp-targets.ts';

const dns: UDPTarget = {
  addresses: ['10.96.0.10'],
  port: 53,
  nodePort: 30053,
  serving: new Set(['10.1.0.5:53', '10.1.0.6:53']),
};

function flow(destination: string, answerer: string): UDPFlow {
  const [destinationIP = '', destinationPort] = destination.split(':');
  const [answererIP = '', answererPort] = answerer.split(':');
  return {
    destinationIP,
    destinationPort: Number(destinationPort),
    answererIP,
    answererPort: Number(answererPort),
  };
}

const isOwn = (ip: string) => ip === '172.18.0.2';

function verdicts(targets: UDPTargets, flows: readonly [string, string][]): boolean[] {
  return flows.map(([destination, answerer]) => targets.isStale(flow(destination, answerer), isOwn));
}

const flows: [string, string][] = [
  ['10.96.0.10:53', '10.1.0.5:53'],
  ['10.96.0.10:53', '10.1.0.6:53'],
  ['10.96.0.10:53', '10.1.0.9:53'],
  ['10.96.0.10:53', '10.96.0.10:53'],
  ['172.18.0.2:30053', '10.1.0.5:53'],
  ['172.18.0.2:30053', '10.1.0.9:53'],
  ['172.18.0.2:30053', '172.18.0.2:30053'],
  ['198.51.100.1:30053', '198.51.100.1:30053'],
  ['192.0.2.1:53', '192.0.2.1:53'],
];

test('flows to a frontend need a serving endpoint, flows to other machines are never stale', () => {
  const targets = new UDPTargets();
  targets.update('kube-system/dns/UDP', dns);
  assert.deepEqual(verdicts(targets, flows), [false, false, true, true, false, true, true, false, false]);
});

test('without serving endpoints every flow to the service is stale, including node port flows', () => {
  const targets = new UDPTargets();
  targets.update('kube-system/dns/UDP', { ...dns, serving: new Set() });
  assert.deepEqual(verdicts(targets, flows), [true, true, true, true, true, true, true, false, false]);
});

test('flows of a deleted service are stale until a pass has covered the deletion', () => {
  const targets = new UDPTargets();
  targets.update('kube-system/dns/UDP', dns);
  targets.settle(targets.changes);
  targets.update('kube-system/dns/UDP', undefined);
  assert.equal(targets.isSettled(targets.changes), false);
  assert.deepEqual(verdicts(targets, flows).slice(0, 6), [true, true, true, true, true, true]);
  targets.settle(targets.changes);
  assert.equal(targets.isSettled(targets.changes), true);
  assert.deepEqual(new Set(verdicts(targets, flows)), new Set([false]));
});

test('flows to an address that moved to another service are checked against that service', () => {
  const targets = new UDPTargets();
  targets.update('a/old/UDP', dns);
  targets.update('a/old/UDP', undefined);
  targets.update('a/new/UDP', { ...dns, serving: new Set(['10.1.0.9:53']) });
  targets.settle(targets.changes);
  assert.deepEqual(verdicts(targets, flows).slice(0, 4), [true, true, false, true]);
});

test('a change made during a pass is covered by the next one', () => {
  const targets = new UDPTargets();
  targets.update('a/x/UDP', dns);
  const pass = targets.changes;
  targets.update('a/x/UDP', undefined);
  targets.settle(pass);
  assert.equal(targets.isSettled(targets.changes), false);
  assert.equal(targets.isStale(flow('10.96.0.10:53', '10.1.0.5:53'), isOwn), true);
});

test('ports that are not UDP change nothing', () => {
  const targets = new UDPTargets();
  targets.update('a/web/TCP', undefined);
  assert.equal(targets.isSettled(targets.changes), true);
});

test('flows to an address that passes to another service port are stale, whichever of the two is updated first', () => {
  const other = { ...dns, serving: new Set(['10.1.0.9:53']) };
  const nothing = { ...dns, addresses: [], nodePort: 0 };
  const changes = [
    ['a/one/UDP', nothing],
    ['a/two/UDP', other],
  ] as const;
  for (const order of [changes, changes.toReversed()]) {
    const targets = new UDPTargets();
    targets.update('a/one/UDP', dns);
    targets.settle(targets.changes);
    assert.deepEqual(verdicts(targets, flows).slice(0, 4), [false, false, true, true]);
    for (const [key, target] of order) targets.update(key, target);
    assert.deepEqual(verdicts(targets, flows).slice(0, 4), [true, true, false, true]);
    targets.settle(targets.changes);
    assert.deepEqual(verdicts(targets, flows).slice(0, 4), [true, true, false, true]);
  }
});

test('scopes are the frontends and node ports that changed since the last pass', () => {
  const targets = new UDPTargets();
  targets.update('a/x/UDP', dns);
  targets.settle(targets.changes);
  assert.deepEqual(targets.scopes(9), []);
  targets.update('a/x/UDP', { ...dns, addresses: ['10.96.0.11'] });
  const scopes = targets
    .scopes(9)
    ?.map(({ destinationIP, destinationPort }) => [destinationIP, destinationPort]);
  assert.deepEqual(scopes, [
    ['10.96.0.10', 53],
    [undefined, 30053],
    ['10.96.0.11', 53],
  ]);
  assert.equal(targets.scopes(2), undefined);
});
