import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FakeClock } from '../lib/fake-clock.ts';
import { silentLogger } from '../obs/log.ts';
import { ConntrackReconciler } from './reconciler.ts';
import type { UDPFlow, UDPTarget } from './udp-targets.ts';

const target: UDPTarget = {
  addresses: ['10.96.0.10'],
  port: 53,
  nodePort: 0,
  serving: new Set(['10.1.0.5:53']),
};

function flowTo(answererIP: string, id = 0): UDPFlow & { id: number } {
  return { destinationIP: '10.96.0.10', destinationPort: 53, answererIP, answererPort: 53, id };
}

function harness(entries: (UDPFlow & { id: number })[]) {
  const clock = new FakeClock(0);
  const state = { entries, failure: undefined as Error | undefined, dumps: 0, deleted: 0, passes: 0 };
  const reconciler = new ConntrackReconciler<UDPFlow & { id: number }>({
    family: 'IPv4',
    table: {
      async udpFlows({ flow, restart }) {
        state.dumps++;
        if (state.failure) throw state.failure;
        for (const entry of state.entries.slice(0, 1)) flow(entry);
        restart();
        for (const entry of state.entries) flow(entry);
      },
      async remove(flows) {
        const gone = new Set(flows);
        const before = state.entries.length;
        state.entries = state.entries.filter((entry) => !gone.has(entry));
        return before - state.entries.length;
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

test('deletes stale flows and leaves the others', async () => {
  const good = flowTo('10.1.0.5');
  const { clock, state, reconciler } = harness([good, flowTo('10.1.0.9')]);
  reconciler.update('a/dns/UDP', target);
  reconciler.reconcile();
  await clock.advance(0);
  assert.deepEqual(state.entries, [good]);
  assert.equal(state.deleted, 1);
});

test('nothing is read when no UDP service port changed', async () => {
  const { clock, state, reconciler } = harness([]);
  reconciler.update('a/web/TCP', undefined);
  reconciler.reconcile();
  await clock.advance(0);
  assert.equal(state.dumps, 0);
});

test('a failed pass is tried again and forgets nothing', async () => {
  const { clock, state, reconciler } = harness([flowTo('10.1.0.5')]);
  reconciler.update('a/dns/UDP', target);
  reconciler.reconcile();
  await clock.advance(0);
  state.failure = new Error('ENOBUFS');
  reconciler.update('a/dns/UDP', undefined);
  reconciler.reconcile();
  await clock.advance(1000);
  assert.equal(state.entries.length, 1);
  state.failure = undefined;
  await clock.advance(5000);
  assert.deepEqual(state.entries, []);
});

test('more stale flows than are held in memory take several reads', async () => {
  const { clock, state, reconciler } = harness(
    Array.from({ length: 25_000 }, (_, id) => flowTo('10.1.0.9', id)),
  );
  reconciler.update('a/dns/UDP', target);
  reconciler.reconcile();
  await clock.advance(0);
  assert.deepEqual(state.entries, []);
  assert.equal(state.dumps, 3);
  assert.equal(state.passes, 1);
});

test('close ends retries', async () => {
  const { clock, state, reconciler } = harness([]);
  state.failure = new Error('EPERM');
  reconciler.update('a/dns/UDP', target);
  reconciler.reconcile();
  await clock.advance(0);
  await reconciler.close();
  await clock.advance(60_000);
  assert.equal(state.dumps, 1);
  assert.equal(clock.pending, 0);
});
