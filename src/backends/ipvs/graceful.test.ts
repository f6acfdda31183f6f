import assert from 'node:assert/strict';
import { test } from 'node:test';
import { planOf } from '../../../test/cluster/plans.ts';
import { Node } from '../../../test/ipvs/harness.ts';
import type { Protocol } from '../../model/objects.ts';
import type { ServicePlan } from '../../plan/service-plan.ts';
import { pollIntervalMs } from './graceful.ts';
import { removalOf } from './termination-list.ts';

const server = '10.96.0.1:80/TCP';
const leaving = '10.244.0.2:8080';

function service(endpoints: readonly number[], protocol: Protocol = 'TCP'): ServicePlan {
  return planOf(
    { clusterIP: '10.96.0.1', protocol },
    endpoints.map((n) => ({ ip: `10.244.0.${n}` })),
  );
}

/** A node with endpoints 1 and 2, the second with connections, from which the second was then taken. */
async function draining(active = 3, inactive = 0): Promise<Node> {
  const node = new Node();
  await node.full(service([1, 2]));
  node.fake.connect(server, leaving, active, inactive);
  await node.change(service([1]));
  return node;
}

test('TCP drains while connections last, other protocols do not wait', () => {
  const counts = (activeConnections: number, inactiveConnections: number) => ({
    activeConnections,
    inactiveConnections,
  });
  const rows = [
    ['TCP', counts(0, 0), 'delete'],
    ['TCP', counts(1, 0), 'drain'],
    ['TCP', counts(0, 2), 'drain'],
    ['TCP', undefined, 'gone'],
    ['UDP', counts(5, 5), 'delete'],
    ['SCTP', counts(5, 5), 'delete'],
    ['UDP', undefined, 'gone'],
  ] as const;
  for (const [protocol, listed, removal] of rows) assert.equal(removalOf(protocol, listed), removal);
});

test('without connections a real server goes at once', async () => {
  const node = await draining(0, 0);
  assert.deepEqual(node.fake.reals(server), ['10.244.0.1:8080=1']);
  assert.equal(node.clock.pending, 0);
});

test('a real server with connections drains until a check finds none', async () => {
  const node = await draining();
  const drained = ['10.244.0.1:8080=1', '10.244.0.2:8080=0'];
  assert.deepEqual(node.fake.reals(server), drained);
  await node.clock.advance(pollIntervalMs);
  assert.deepEqual(node.fake.reals(server), drained);
  node.fake.connect(server, leaving, 0, 2);
  await node.clock.advance(pollIntervalMs);
  assert.deepEqual(node.fake.reals(server), drained, 'those in TIME_WAIT count');
  node.fake.connect(server, leaving, 0);
  await node.clock.advance(pollIntervalMs - 1);
  assert.deepEqual(node.fake.reals(server), drained, 'not before its time');
  await node.clock.advance(1);
  assert.deepEqual(node.fake.reals(server), ['10.244.0.1:8080=1']);
  assert.equal(node.clock.pending, 0, 'nothing left to look after');
});

test('real servers of other protocols than TCP are deleted at once', async () => {
  for (const protocol of ['UDP', 'SCTP'] as const) {
    const node = new Node();
    await node.full(service([1, 2], protocol));
    node.fake.connect(`10.96.0.1:80/${protocol}`, leaving, 3);
    await node.change(service([1], protocol));
    assert.deepEqual(node.fake.reals(`10.96.0.1:80/${protocol}`), ['10.244.0.1:8080=1']);
  }
});

test('a sync leaves draining real servers alone, and restores one that is wanted again with its connections', async () => {
  const node = await draining();
  node.fake.takeLog();
  await node.full(service([1]));
  await node.change(service([1]));
  assert.deepEqual(
    node.fake.takeLog().filter((words) => words !== 'restore'),
    [],
  );
  await node.change(service([1, 2]));
  assert.deepEqual(node.fake.takeLog(), [`edit ${leaving} 1 @ ${server}`]);
  node.fake.connect(server, leaving, 0);
  await node.clock.advance(2 * pollIntervalMs);
  assert.deepEqual(node.fake.reals(server), ['10.244.0.1:8080=1', '10.244.0.2:8080=1']);
});

test('a restart gives back weights to what is wanted and drains the rest from the start', async () => {
  const { fake } = await draining();
  const wanted = new Node({}, fake);
  await wanted.full(service([1, 2]));
  assert.deepEqual(fake.reals(server), ['10.244.0.1:8080=1', '10.244.0.2:8080=1']);

  const { fake: other } = await draining();
  const unwanted = new Node({}, other);
  await unwanted.full(service([1]));
  assert.deepEqual(other.reals(server), ['10.244.0.1:8080=1', '10.244.0.2:8080=0']);
  other.connect(server, leaving, 0);
  await unwanted.clock.advance(pollIntervalMs);
  assert.deepEqual(other.reals(server), ['10.244.0.1:8080=1']);
});

test('weights are given back until a first sync has succeeded', async () => {
  const { fake } = await draining();
  const node = new Node({}, fake);
  fake.refuse = /^restore/;
  await assert.rejects(node.full(service([1])));
  fake.refuse = undefined;
  fake.virtual.get(server)?.reals.set('10.244.0.1:8080', {
    address: '10.244.0.1',
    port: 8080,
    weight: 0,
    active: 0,
    inactive: 0,
  });
  await node.full(service([1]));
  assert.deepEqual(fake.reals(server), ['10.244.0.1:8080=1', '10.244.0.2:8080=0']);
});

test('weights are given back until a sync was refused nothing, and are an administrator’s affair from then on', async () => {
  const { fake } = await draining();
  const node = new Node({}, fake);
  fake.refuse = /^edit/;
  assert.equal((await node.full(service([1, 2]))).refused.length, 1);
  fake.refuse = undefined;
  await node.full(service([1, 2]));
  assert.deepEqual(fake.reals(server), ['10.244.0.1:8080=1', '10.244.0.2:8080=1']);
  const real = fake.virtual.get(server)?.reals.get(leaving) ?? assert.fail();
  fake.virtual.get(server)?.reals.set(leaving, { ...real, weight: 7 });
  await node.full(service([1, 2]));
  assert.deepEqual(fake.reals(server), ['10.244.0.1:8080=1', '10.244.0.2:8080=7']);
});

test('a deleted service takes its draining real servers along', async () => {
  const node = await draining();
  await node.remove(service([]));
  assert.equal(node.fake.virtual.size, 0);
  await node.clock.advance(pollIntervalMs);
  assert.equal(node.clock.pending, 0);
  await node.change(service([2]));
  assert.deepEqual(node.fake.reals(server), ['10.244.0.2:8080=1']);
});

test('a draining real server that another program deleted is forgotten', async () => {
  const node = await draining();
  node.fake.virtual.get(server)?.reals.delete(leaving);
  await node.clock.advance(pollIntervalMs);
  assert.equal(node.clock.pending, 0);
  await node.change(service([1, 2]));
  assert.deepEqual(node.fake.reals(server), ['10.244.0.1:8080=1', '10.244.0.2:8080=1']);
});

test('a real server that is absent when it is deleted or drained counts as gone', async () => {
  const udp = new Node();
  await udp.full(service([1, 2], 'UDP'));
  udp.fake.virtual.get('10.96.0.1:80/UDP')?.reals.delete(leaving);
  assert.deepEqual(await udp.change(service([1], 'UDP')), { refused: [] });
  assert.equal(udp.clock.pending, 0, 'neither drained nor tried again');

  const tcp = new Node();
  await tcp.full(service([1, 2]));
  tcp.fake.virtual.get(server)?.reals.delete(leaving);
  tcp.fake.refuse = /^list real/;
  assert.deepEqual(await tcp.change(service([1])), { refused: [] });
  assert.equal(tcp.clock.pending, 0);
});

test('a draining real server that cannot be read or deleted waits for the next check', async () => {
  const node = await draining();
  node.fake.connect(server, leaving, 0);
  node.fake.refuse = /^list real/;
  await node.clock.advance(pollIntervalMs);
  node.fake.refuse = /^delete/;
  await node.clock.advance(pollIntervalMs);
  assert.deepEqual(node.fake.reals(server), ['10.244.0.1:8080=1', '10.244.0.2:8080=0']);
  node.fake.refuse = undefined;
  await node.clock.advance(pollIntervalMs);
  assert.deepEqual(node.fake.reals(server), ['10.244.0.1:8080=1']);
});

test('a real server that cannot be deleted is drained, and one that cannot be drained is reported', async () => {
  const node = new Node();
  await node.full(service([1, 2]));
  node.fake.refuse = /^delete 10\.244/;
  assert.deepEqual(await node.change(service([1])), { refused: [] });
  assert.deepEqual(node.fake.reals(server), ['10.244.0.1:8080=1', '10.244.0.2:8080=0']);

  const worse = new Node();
  await worse.full(service([1, 2]));
  worse.fake.refuse = /^(delete|edit) 10\.244/;
  const { refused } = await worse.change(service([1]));
  assert.deepEqual(
    refused.map(({ key }) => key),
    ['default/web/TCP'],
  );
  worse.fake.refuse = undefined;
  await worse.full(service([1]));
  assert.deepEqual(worse.fake.reals(server), ['10.244.0.1:8080=1']);
});

test('close ends the checks of draining real servers', async () => {
  const node = await draining();
  await node.backend.close();
  assert.equal(node.clock.pending, 0);
});
