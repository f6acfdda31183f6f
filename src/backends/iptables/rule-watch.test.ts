import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FakeClock } from '../../../test/fake-clock.ts';
import { ignorePorts } from '../../kernel/netlink/filter.ts';
import type { RuleEvent, RuleEventListener } from '../../kernel/nft/rule-events.ts';
import { silentLogger } from '../../obs/log.ts';
import { RuleWatch } from './rule-watch.ts';

function fixture() {
  const clock = new FakeClock();
  const filters: Uint8Array[] = [];
  const reports: unknown[] = [];
  /** Ends the wait for queued notifications. */
  let drain = () => {};
  let listener: RuleEventListener | undefined;
  let subscriptions = 0;
  const watch = new RuleWatch({
    subscribe: (to) => {
      subscriptions++;
      listener = to;
      return {
        attachFilter: (program) => void filters.push(program),
        drained: () =>
          new Promise((resolve) => {
            drain = resolve;
          }),
        pause() {},
        resume() {},
        close: () => {
          listener = undefined;
        },
      };
    },
    clock,
    logger: silentLogger,
  });
  for (const family of ['IPv4', 'IPv6'] as const) {
    watch.watch(family, {
      owns: (table, chain) => table === 'nat' && chain === 'KUBE-SVC-A',
      onDamage: ({ objects, by }) => void reports.push([family, Object.fromEntries(objects), by]),
      onSuspicion: (by) => void reports.push([family, 'suspicion', by]),
    });
  }
  const drained = async () => {
    drain();
    await clock.advance(0);
  };
  return {
    clock,
    filters,
    reports,
    watch,
    drained,
    listener: () => listener,
    subscriptions: () => subscriptions,
  };
}

const deleted: RuleEvent = {
  port: 42,
  family: 'IPv4',
  type: 'deleted',
  kind: 'rule',
  table: 'nat',
  chain: 'KUBE-SVC-A',
};

test('a transaction on our chains is reported once, to its family', () => {
  const { listener, reports } = fixture();
  listener()?.event(deleted);
  listener()?.event(deleted);
  listener()?.event({ ...deleted, type: 'added' });
  listener()?.event({ ...deleted, chain: 'INPUT' });
  assert.deepEqual(reports, []);
  listener()?.committed(42, { processName: 'iptables', pid: 42 });
  assert.deepEqual(reports, [['IPv4', { 'rule deleted': 2, 'rule added': 1 }, 'iptables[42]']]);
  listener()?.committed(43, { processName: 'nft', pid: 43 });
  assert.equal(reports.length, 1);
});

test('what our own programs write is not reported, also when it is read after their end', async () => {
  const { watch, listener, reports, filters, drained } = fixture();
  const write = () => {
    listener()?.event(deleted);
    listener()?.committed(42, { processName: 'iptables-restor', pid: 42 });
  };
  watch.writerStarted(42);
  write();
  watch.writerEnded(42);
  write();
  assert.deepEqual(reports, []);
  assert.deepEqual(filters, [ignorePorts([42]), ignorePorts([])]);
  await drained();
});

test('a program of another pid namespace with the number of one of ours that has ended is reported', async () => {
  const { watch, listener, reports, drained } = fixture();
  watch.writerStarted(42);
  watch.writerEnded(42);
  await drained();
  listener()?.event(deleted);
  listener()?.committed(42, { processName: 'iptables', pid: 31_042 });
  assert.deepEqual(reports, [['IPv4', { 'rule deleted': 1 }, 'iptables[31042]']]);
});

test('deletions of a table or from a chain with jumps are a suspicion, other things are not', () => {
  const { listener, reports } = fixture();
  const settled = (event: RuleEvent) => {
    reports.length = 0;
    listener()?.event(event);
    listener()?.committed(42, { processName: 'nft', pid: 42 });
    return reports.length;
  };
  assert.equal(settled({ ...deleted, kind: 'table', chain: '' }), 1);
  assert.equal(settled({ ...deleted, chain: 'PREROUTING' }), 1);
  assert.equal(settled({ ...deleted, table: 'filter', chain: 'KUBE-FIREWALL' }), 1);
  assert.equal(settled({ ...deleted, type: 'added', chain: 'PREROUTING' }), 0);
  assert.equal(settled({ ...deleted, chain: 'DOCKER' }), 0);
  assert.equal(settled({ ...deleted, chain: 'KUBE-OTHER' }), 0);
  assert.equal(settled({ ...deleted, table: 'raw' }), 0);
});

test('lost events are a suspicion in both families', () => {
  const { listener, reports } = fixture();
  listener()?.overrun();
  assert.deepEqual(reports, [
    ['IPv4', 'suspicion', 'unknown'],
    ['IPv6', 'suspicion', 'unknown'],
  ]);
});

test('a lost subscription to rules is opened again, which is a suspicion', async () => {
  const { clock, listener, reports, watch, subscriptions } = fixture();
  listener()?.failed(new Error('socket'));
  assert.equal(listener(), undefined);
  watch.writerStarted(5);
  watch.writerEnded(5);
  await clock.advance(5_000);
  assert.equal(subscriptions(), 2);
  assert.equal(reports.length, 2);
  watch.unwatch('IPv4');
  listener()?.overrun();
  assert.equal(reports.length, 3);
  watch.close();
  assert.equal(listener(), undefined);
  assert.equal(clock.pending, 0);
});
