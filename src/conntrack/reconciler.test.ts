import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FakeClock } from '../../test/fake-clock.ts';
import { silentLogger } from '../obs/log.ts';
import { ConntrackReconciler } from './reconciler.ts';
import type { Scope, UDPFlow, UDPTarget } from './udp-targets.ts';

const target: UDPTarget = {
  addresses: ['10.96.0.10'],
  port: 53,
  nodePort: 0,
  serving: new Set(['10.1.0.5:53']),
  answersAfterLeaving: true,
};

function flowTo(answererIP: string): UDPFlow {
  return { destinationIP: '10.96.0.10', destinationPort: 53, answererIP, answererPort: 53, isQuiet: false };
}

function harness(entries: UDPFlow[]) {
  const clock = new FakeClock(0);
  const state = {
    entries,
    failure: undefined as Error | undefined,
    sweeps: [] as (readonly Scope[] | 'all')[],
    during: () => {},
    deleted: 0,
    passes: 0,
    isOpen: true,
  };
  const reconciler = new ConntrackReconciler({
    family: 'IPv4',
    table: {
      async sweep({ scopes, isStale, onDeleted }) {
        state.sweeps.push(scopes ?? 'all');
        state.during();
        const before = state.entries.length;
        state.entries = state.entries.filter((entry) => !isStale(entry));
        onDeleted(before - state.entries.length);
        if (state.failure) throw state.failure;
      },
      close: () => {
        state.isOpen = false;
      },
    },
    ownAddresses: async () => new Set(),
    duration: { observe: () => state.passes++ },
    deleted: {
      inc: (_labels, by = 1) => {
        state.deleted += by;
      },
    },
    clock,
    logger: silentLogger,
  });
  return { clock, state, reconciler };
}

test('the reconciler deletes stale flows and keeps the others', async () => {
  const good = flowTo('10.1.0.5');
  const { clock, state, reconciler } = harness([good, flowTo('10.1.0.9')]);
  reconciler.update('a/dns/UDP', target);
  reconciler.reconcile();
  await clock.advance(0);
  assert.deepEqual(state.entries, [good]);
  assert.deepEqual([state.deleted, state.passes], [1, 1]);
});

test('the reconciler limits a pass to what changed, unless too much did', async () => {
  const { clock, state, reconciler } = harness([]);
  for (let i = 0; i < 20; i++) reconciler.update(`a/s${i}/UDP`, { ...target, addresses: [`10.96.1.${i}`] });
  reconciler.reconcile();
  await clock.advance(0);
  assert.deepEqual(state.sweeps.splice(0), ['all']);
  reconciler.update('a/s7/UDP', { ...target, addresses: ['10.96.1.7', '192.0.2.1'], nodePort: 30053 });
  reconciler.reconcile();
  await clock.advance(0);
  const [scopes] = state.sweeps;
  assert.ok(scopes && scopes !== 'all');
  assert.deepEqual(scopes.map(scopeText).sort(), ['*:30053', '10.96.1.7:53', '192.0.2.1:53']);
});

test('the reconciler reads nothing if no UDP service port changed', async () => {
  const { clock, state, reconciler } = harness([]);
  reconciler.update('a/web/TCP', undefined);
  reconciler.reconcile();
  await clock.advance(0);
  assert.deepEqual(state.sweeps, []);
});

test('a failed pass is repeated with all changes, and its deletions are counted', async () => {
  const { clock, state, reconciler } = harness([flowTo('10.1.0.5')]);
  reconciler.update('a/dns/UDP', target);
  reconciler.reconcile();
  await clock.advance(0);
  state.failure = new Error('EINTR');
  state.entries = [flowTo('10.1.0.6')];
  reconciler.update('a/dns/UDP', undefined);
  reconciler.reconcile();
  await clock.advance(400);
  assert.deepEqual([state.deleted, state.passes], [1, 1]);
  state.failure = undefined;
  state.entries = [flowTo('10.1.0.7'), flowTo('10.1.0.8')];
  await clock.advance(5000);
  assert.deepEqual(state.entries, []);
  assert.deepEqual(state.deleted, 3);
});

test('a change made during a pass gets another pass once it is programmed', async () => {
  const { clock, state, reconciler } = harness([flowTo('10.1.0.5')]);
  state.during = () => {
    state.during = () => {};
    queueMicrotask(() => reconciler.update('a/dns/UDP', undefined));
  };
  reconciler.update('a/dns/UDP', target);
  reconciler.reconcile();
  await clock.advance(0);
  assert.equal(state.passes, 1);
  // Until the rules have changed, new flows still go to the old endpoint.
  state.entries = [flowTo('10.1.0.5')];
  reconciler.reconcile();
  await clock.advance(0);
  assert.equal(state.passes, 2);
  await clock.advance(1000);
  assert.deepEqual(state.entries, []);
});

test('flows to an endpoint that just left stay for a second, and its other stale flows go at once', async () => {
  const { clock, state, reconciler } = harness([]);
  reconciler.update('a/dns/UDP', target);
  reconciler.reconcile();
  await clock.advance(0);
  state.entries = [flowTo('10.1.0.5'), flowTo('10.1.0.9')];
  reconciler.update('a/dns/UDP', { ...target, serving: new Set(['10.1.0.6:53']) });
  reconciler.reconcile();
  await clock.advance(900);
  assert.deepEqual(state.entries, [flowTo('10.1.0.5')]);
  await clock.advance(100);
  assert.deepEqual(state.entries, []);
  await clock.advance(500);
  assert.equal(clock.pending, 0);
});

test('while endpoints come and go without pause, flows stay for half a second at least and a second at most', async () => {
  const { clock, state, reconciler } = harness([]);
  const left = new Map<string, number>();
  let shortest = Number.POSITIVE_INFINITY;
  let longest = 0;
  for (let i = 1; i <= 200; i++) {
    const serving = `10.1.0.${i}`;
    reconciler.update('a/dns/UDP', { ...target, serving: new Set([`${serving}:53`]) });
    reconciler.reconcile();
    left.set(`10.1.0.${i - 1}`, clock.now());
    state.entries.push(flowTo(serving));
    await clock.advance(50);
    const present = new Set(state.entries.map(({ answererIP }) => answererIP));
    for (const [ip, at] of left) {
      if (present.has(ip)) longest = Math.max(longest, clock.now() - at);
      else if (ip !== '10.1.0.0') shortest = Math.min(shortest, clock.now() - at);
      if (!present.has(ip)) left.delete(ip);
    }
  }
  assert.ok(shortest >= 500, `gone after ${shortest} ms`);
  assert.ok(longest <= 1000, `still there after ${longest} ms`);
});

test('a failed pass after the grace is repeated', async () => {
  const { clock, state, reconciler } = harness([]);
  reconciler.update('a/dns/UDP', target);
  reconciler.reconcile();
  await clock.advance(0);
  reconciler.update('a/dns/UDP', undefined);
  reconciler.reconcile();
  await clock.advance(900);
  state.failure = new Error('EINTR');
  await clock.advance(200);
  state.failure = undefined;
  state.entries = [flowTo('10.1.0.5')];
  await clock.advance(5000);
  assert.deepEqual(state.entries, []);
  assert.equal(clock.pending, 0);
});

test('closing the reconciler ends the grace', async () => {
  const { clock, state, reconciler } = harness([]);
  reconciler.update('a/dns/UDP', target);
  reconciler.reconcile();
  await clock.advance(0);
  state.entries = [flowTo('10.1.0.5')];
  reconciler.update('a/dns/UDP', undefined);
  reconciler.reconcile();
  await clock.advance(100);
  assert.deepEqual(state.entries, [flowTo('10.1.0.5')]);
  await reconciler.close();
  assert.deepEqual(state.entries, []);
  assert.equal(clock.pending, 0);
});

test('closing the reconciler stops retries and closes the table', async () => {
  const { clock, state, reconciler } = harness([]);
  state.failure = new Error('EPERM');
  reconciler.update('a/dns/UDP', target);
  reconciler.reconcile();
  await clock.advance(0);
  await reconciler.close();
  await clock.advance(60_000);
  assert.equal(state.sweeps.length, 1);
  assert.equal(clock.pending, 0);
  assert.equal(state.isOpen, false);
});

function scopeText({ destinationIP = '*', destinationPort }: Scope): string {
  return `${destinationIP}:${destinationPort}`;
}
