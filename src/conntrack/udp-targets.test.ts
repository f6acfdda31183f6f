import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type UDPFlow, type UDPTarget, UDPTargets } from './udp-targets.ts';

const dns: UDPTarget = {
  addresses: ['10.96.0.10'],
  port: 53,
  nodePort: 30053,
  serving: new Set(['10.1.0.5:53', '10.1.0.6:53']),
  answersAfterLeaving: true,
};

function flow(destination: string, answerer: string): UDPFlow {
  const [destinationIP = '', destinationPort] = destination.split(':');
  const [answererIP = '', answererPort] = answerer.split(':');
  return {
    destinationIP,
    destinationPort: Number(destinationPort),
    answererIP,
    answererPort: Number(answererPort),
    isQuiet: false,
  };
}

const noGrace = { graceOver: Number.POSITIVE_INFINITY };
const everyGrace = { graceOver: 0 };

/** Settles the changes so far, without a grace. */
function settle(targets: UDPTargets, changes = targets.changes): void {
  targets.settle({ changes, ...noGrace });
}

const isOwn = (ip: string) => ip === '172.18.0.2';

function verdicts(
  targets: UDPTargets,
  flows: readonly [string, string][],
  reach: { graceOver: number } = noGrace,
): boolean[] {
  return flows.map(([destination, answerer]) => targets.isStale(flow(destination, answerer), isOwn, reach));
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
  settle(targets);
  targets.update('kube-system/dns/UDP', undefined);
  assert.equal(targets.isSettled(targets.changes), false);
  assert.deepEqual(verdicts(targets, flows).slice(0, 6), [true, true, true, true, true, true]);
  settle(targets);
  assert.equal(targets.isSettled(targets.changes), true);
  assert.deepEqual(new Set(verdicts(targets, flows)), new Set([false]));
});

test('flows to an address that moved to another service are checked against that service', () => {
  const targets = new UDPTargets();
  targets.update('a/old/UDP', dns);
  targets.update('a/old/UDP', undefined);
  targets.update('a/new/UDP', { ...dns, serving: new Set(['10.1.0.9:53']) });
  settle(targets);
  assert.deepEqual(verdicts(targets, flows).slice(0, 4), [true, true, false, true]);
});

test('a change made during a pass is covered by the next one', () => {
  const targets = new UDPTargets();
  targets.update('a/x/UDP', dns);
  const pass = targets.changes;
  targets.update('a/x/UDP', undefined);
  settle(targets, pass);
  assert.equal(targets.isSettled(targets.changes), false);
  assert.equal(targets.isStale(flow('10.96.0.10:53', '10.1.0.5:53'), isOwn, noGrace), true);
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
    settle(targets);
    assert.deepEqual(verdicts(targets, flows).slice(0, 4), [false, false, true, true]);
    for (const [key, target] of order) targets.update(key, target);
    assert.deepEqual(verdicts(targets, flows).slice(0, 4), [true, true, false, true]);
    settle(targets);
    assert.deepEqual(verdicts(targets, flows).slice(0, 4), [true, true, false, true]);
  }
});

test('scopes are the frontends and node ports that changed since the last pass', () => {
  const targets = new UDPTargets();
  targets.update('a/x/UDP', dns);
  settle(targets);
  assert.deepEqual(targets.scopes(9, noGrace), []);
  targets.update('a/x/UDP', { ...dns, addresses: ['10.96.0.11'] });
  const scopes = targets
    .scopes(9, noGrace)
    ?.map(({ destinationIP, destinationPort }) => [destinationIP, destinationPort]);
  assert.deepEqual(scopes, [
    ['10.96.0.10', 53],
    [undefined, 30053],
    ['10.96.0.11', 53],
  ]);
  assert.equal(targets.scopes(2, noGrace), undefined);
});

/** Targets whose changes are programmed one by one. */
function programmed(
  ...changes: readonly (readonly [key: string, target: UDPTarget | undefined])[]
): UDPTargets {
  const targets = new UDPTargets();
  for (const [key, target] of changes) {
    targets.update(key, target);
    targets.programmed();
  }
  return targets;
}

const one = { ...dns, serving: new Set(['10.1.0.6:53']) };

test('flows to an endpoint that just left are kept until its grace is over, others are not', () => {
  const targets = programmed(['a/x/UDP', dns], ['a/x/UDP', one]);
  const change = targets.changes;
  const kept = [false, false, true, true, false, true, true, false, false];
  assert.deepEqual(verdicts(targets, flows, everyGrace), kept);
  targets.settle({ changes: change, graceOver: change - 1 });
  assert.deepEqual(verdicts(targets, flows, { graceOver: change - 1 }), kept);
  assert.equal(targets.isGraceOver(change - 1), false);
  assert.equal(targets.isGraceOver(change), true);
  assert.equal(targets.scopes(9, { graceOver: change })?.length, 2);
  const afterwards = [true, false, true, true, true, true, true, false, false];
  assert.deepEqual(verdicts(targets, flows, { graceOver: change }), afterwards);
  targets.settle({ changes: change, graceOver: change });
  assert.deepEqual([targets.hasDepartures, targets.isGraceOver(change)], [false, false]);
});

test('flows to an endpoint that is about to leave are kept, and nothing piles up until that is programmed', () => {
  const targets = programmed(['a/x/UDP', dns]);
  for (let i = 0; i < 100; i++) {
    targets.update('a/x/UDP', { ...dns, serving: new Set([`10.2.0.${i}:53`]) });
  }
  assert.deepEqual(verdicts(targets, flows).slice(0, 4), [false, false, true, true]);
  assert.equal(targets.hasDepartures, false);
});

test('a flow without packets for some time has no grace: it waits for no answer', () => {
  const targets = programmed(['a/x/UDP', dns], ['a/x/UDP', one]);
  const [busy, other] = [flow('10.96.0.10:53', '10.1.0.5:53'), flow('10.96.0.10:53', '10.1.0.6:53')];
  assert.equal(targets.isStale(busy, isOwn, everyGrace), false);
  assert.equal(targets.isStale({ ...busy, isQuiet: true }, isOwn, everyGrace), true);
  assert.equal(targets.isStale({ ...other, isQuiet: true }, isOwn, everyGrace), false);
});

test('flows of a deleted service have the grace, too, and the service is forgotten after it', () => {
  const targets = programmed(['a/x/UDP', dns], ['a/x/UDP', undefined]);
  const { changes } = targets;
  targets.settle({ changes, ...everyGrace });
  assert.deepEqual(verdicts(targets, flows, everyGrace).slice(0, 4), [false, false, true, true]);
  assert.equal(verdicts(targets, flows)[0], true);
  targets.settle({ changes, graceOver: changes });
  assert.equal(verdicts(targets, flows)[2], false);
});

test('an endpoint that leaves, returns and leaves again has a grace each time', () => {
  const targets = programmed(['a/x/UDP', dns], ['a/x/UDP', one], ['a/x/UDP', dns], ['a/x/UDP', one]);
  assert.equal(verdicts(targets, flows, { graceOver: targets.changes - 1 })[0], false);
  assert.equal(verdicts(targets, flows, { graceOver: targets.changes })[0], true);
});

test('flows keep the grace when their address passes to another service port, in either order', () => {
  const renamed = { ...dns, serving: new Set<string>() };
  for (const order of [
    ['old', 'new'],
    ['new', 'old'],
  ]) {
    const targets = programmed(['old', dns]);
    for (const key of order) targets.update(key, key === 'new' ? renamed : undefined);
    targets.programmed();
    assert.deepEqual(verdicts(targets, flows, everyGrace).slice(0, 4), [false, false, true, true]);
  }
});

test('a socket of this program that is closed has no grace', () => {
  const targets = programmed(['a/x/UDP', { ...dns, answersAfterLeaving: false }], ['a/x/UDP', undefined]);
  assert.equal(verdicts(targets, flows, everyGrace)[0], true);
  assert.equal(targets.hasDepartures, false);
});
