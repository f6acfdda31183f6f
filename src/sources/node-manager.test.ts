import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FakeClock } from '../../test/fake-clock.ts';
import type { NodeObject } from '../model/objects.ts';
import { type Logger, silentLogger } from '../obs/log.ts';
import { NodeManager, type NodeManagerOptions, type NodeStart } from './node-manager.ts';

const node = (over: Partial<NodeObject> = {}): NodeObject => ({
  name: 'n1',
  resourceVersion: '1',
  labels: {},
  addresses: [{ type: 'InternalIP', address: '10.0.0.1' }],
  podCIDRs: [],
  taintKeys: [],
  deleting: false,
  ...over,
});
const zone = (name: string) => ({ labels: { 'topology.kubernetes.io/zone': name } });

/** A manager on a fake clock, with its log lines, reactions and result. */
function setUp(over: Partial<NodeManagerOptions> = {}) {
  const clock = new FakeClock();
  const errors: string[] = [];
  const logger: Logger = { ...silentLogger, error: (error) => errors.push(String(error)) };
  const manager = new NodeManager({ nodeName: 'n1', needsPodCIDRs: false, clock, logger, ...over });
  const reactions: string[] = [];
  const outcome: { start?: NodeStart; error?: string } = {};
  const put = (object: NodeObject) => manager.upsert('nodes', object);
  const wait = () =>
    manager.waitForNode().then(
      (start) => {
        outcome.start = start;
      },
      (error: unknown) => {
        outcome.error = String(error);
      },
    );
  const react = () =>
    manager.react({
      onFatal: (reason) => reactions.push(`fatal: ${reason}`),
      onZone: (name) => reactions.push(`zone: ${name}`),
    });
  /** Through the start with the given node, to the first reaction. */
  const started = async (object?: NodeObject) => {
    if (object) put(object);
    manager.synced('nodes');
    const waiting = wait();
    await clock.advance(400_000);
    await waiting;
    react();
  };
  return { clock, errors, manager, reactions, outcome, put, wait, react, started };
}

test('the first list is awaited without limit', async () => {
  const { clock, manager, outcome, put, wait } = setUp();
  void wait();
  await clock.advance(86_400_000);
  assert.deepEqual(outcome, {});
  put(node());
  manager.synced('services');
  await clock.advance(0);
  assert.deepEqual(outcome, {}, 'another list does not count');
  manager.synced('nodes');
  await clock.advance(0);
  assert.deepEqual(outcome.start, { nodeIPs: ['10.0.0.1'], podCIDRs: [] });
  assert.equal(clock.pending, 0);
});

test('a node that arrives late is used at the next poll', async () => {
  const { clock, errors, manager, outcome, put, wait } = setUp();
  manager.synced('nodes');
  void wait();
  await clock.advance(12_500);
  put(node());
  await clock.advance(499);
  assert.deepEqual(Object.keys(outcome), []);
  await clock.advance(1);
  assert.deepEqual(outcome.start?.nodeIPs, ['10.0.0.1']);
  assert.deepEqual(errors, []);
});

for (const [name, object, message] of [
  ['no node', undefined, 'Error: node "n1" not found'],
  ['a node without addresses', node({ addresses: [] }), 'Error: node "n1" has no IP address'],
] as const) {
  test(`${name} is reported after 30 seconds, and the start goes on`, async () => {
    const { clock, errors, manager, outcome, put, wait } = setUp();
    if (object) put(object);
    manager.synced('nodes');
    void wait();
    await clock.advance(29_999);
    assert.equal(outcome.start, undefined);
    await clock.advance(1);
    assert.deepEqual(outcome.start, { nodeIPs: [], podCIDRs: [] });
    assert.deepEqual(errors, [message]);
  });
}

for (const [name, object, seconds, message] of [
  ['no node', undefined, 330, 'Error: timeout waiting for node "n1" to exist'],
  ['no pod CIDRs', node(), 300, 'Error: timeout waiting for PodCIDR allocation on node "n1"'],
] as const) {
  test(`with NodeCIDR, ${name} is fatal after ${seconds} seconds`, async () => {
    const { clock, manager, outcome, put, wait } = setUp({ needsPodCIDRs: true });
    if (object) put(object);
    manager.synced('nodes');
    void wait();
    await clock.advance(seconds * 1000 - 1);
    assert.deepEqual(outcome, {});
    await clock.advance(1);
    assert.deepEqual(outcome, { error: message });
  });
}

test('with NodeCIDR, pod CIDRs that arrive late are used', async () => {
  const { clock, manager, outcome, put, wait } = setUp({ needsPodCIDRs: true });
  put(node());
  manager.synced('nodes');
  void wait();
  await clock.advance(200_000);
  put(node({ podCIDRs: ['10.1.0.0/24'] }));
  await clock.advance(1_000);
  assert.deepEqual(outcome.start, { nodeIPs: ['10.0.0.1'], podCIDRs: ['10.1.0.0/24'] });
});

test('with waits: false, nothing is awaited after the first list', async () => {
  const bare = setUp({ waits: false });
  bare.put(node({ addresses: [] }));
  bare.manager.synced('nodes');
  void bare.wait();
  await bare.clock.advance(0);
  assert.deepEqual(bare.outcome.start, { nodeIPs: [], podCIDRs: [] });
  const needy = setUp({ waits: false, needsPodCIDRs: true });
  needy.put(node());
  needy.manager.synced('nodes');
  void needy.wait();
  await needy.clock.advance(0);
  assert.match(needy.outcome.error ?? '', /node "n1" has no spec\.podCIDRs/);
});

const first = node({ podCIDRs: ['10.1.0.0/24'] });

for (const [name, needsPodCIDRs, change, expected] of [
  ['other IPs', false, node({ addresses: [{ type: 'InternalIP', address: '10.0.0.2' }] }), 'fatal'],
  ['no IPs any more', false, node({ addresses: [] }), 'fatal'],
  [
    'a second family',
    false,
    node({ addresses: [...first.addresses, { type: 'ExternalIP', address: 'fd00::1' }] }),
    'fatal',
  ],
  [
    'a second address that is not used',
    false,
    node({ addresses: [...first.addresses, { type: 'InternalIP', address: '10.0.0.9' }] }),
    'nothing',
  ],
  ['pod CIDRs, not used', false, node({ podCIDRs: ['10.2.0.0/24'] }), 'nothing'],
  ['pod CIDRs, used', true, node({ podCIDRs: ['10.2.0.0/24'] }), 'fatal'],
  ['one more pod CIDR, used', true, node({ podCIDRs: ['10.1.0.0/24', 'fd00::/64'] }), 'fatal'],
  [
    'taints and deletion mark',
    false,
    node({ taintKeys: ['ToBeDeletedByClusterAutoscaler'], deleting: true }),
    'nothing',
  ],
  ['another node', false, node({ name: 'n2', addresses: [] }), 'nothing'],
] as const) {
  test(`after the start, ${name}: ${expected}`, async () => {
    const { manager, reactions, started, put } = setUp({ needsPodCIDRs });
    await started(first);
    assert.equal(reactions.length, 0);
    put(change);
    put(change);
    assert.deepEqual(
      reactions.map((line) => line.split(':')[0]),
      expected === 'fatal' ? ['fatal'] : [],
    );
    if (change.name === 'n1') assert.equal(manager.node, change, 'the latest node is kept');
  });
}

test('reasons to exit name what changed', async () => {
  const ips = setUp();
  await ips.started(node());
  ips.put(node({ addresses: [{ type: 'InternalIP', address: '10.0.0.2' }] }));
  assert.deepEqual(ips.reactions, ['fatal: IP addresses of node "n1" changed from [10.0.0.1] to [10.0.0.2]']);
  const gone = setUp();
  await gone.started(node());
  gone.manager.remove('nodes', node({ name: 'n2' }));
  assert.deepEqual(gone.reactions, []);
  gone.manager.remove('nodes', node());
  assert.deepEqual(gone.reactions, ['fatal: node "n1" was deleted']);
  assert.equal(gone.manager.node, undefined);
});

test('pod CIDRs can be needed from some time on, as they are then, and no longer', async () => {
  const { manager, reactions, started, put } = setUp();
  await started(node());
  assert.throws(() => manager.setNeedsPodCIDRs(true), /node "n1" has no spec\.podCIDRs/);
  put(node({ podCIDRs: ['10.1.0.0/24'] }));
  assert.deepEqual(manager.setNeedsPodCIDRs(true).podCIDRs, ['10.1.0.0/24']);
  put(node({ podCIDRs: ['10.1.0.0/24'], resourceVersion: '2' }));
  assert.deepEqual(manager.setNeedsPodCIDRs(false).nodeIPs, ['10.0.0.1']);
  put(node({ podCIDRs: ['10.2.0.0/24'] }));
  assert.deepEqual(reactions, []);
  manager.setNeedsPodCIDRs(true);
  put(node({ podCIDRs: ['10.3.0.0/24'] }));
  assert.deepEqual(reactions, ['fatal: pod CIDRs of node "n1" changed from [10.2.0.0/24] to [10.3.0.0/24]']);
});

test('addresses that appear after the start are fatal; a node without addresses is not', async () => {
  const { reactions, started, put } = setUp();
  await started();
  assert.deepEqual(reactions, []);
  put(node({ addresses: [] }));
  assert.deepEqual(reactions, []);
  put(node());
  assert.deepEqual(reactions, ['fatal: IP addresses of node "n1" changed from [] to [10.0.0.1]']);
});

test('the deletion of a node that appeared after the start is fatal', async () => {
  const { manager, reactions, started, put } = setUp();
  await started();
  put(node({ addresses: [] }));
  manager.remove('nodes', node({ addresses: [] }));
  assert.deepEqual(reactions, ['fatal: node "n1" was deleted']);
});

test('the deletion of a node before the start is not fatal', async () => {
  const { clock, manager, reactions, put, react, wait } = setUp();
  manager.synced('nodes');
  const waiting = wait();
  put(node({ addresses: [] }));
  manager.remove('nodes', node({ addresses: [] }));
  await clock.advance(30_000);
  await waiting;
  react();
  assert.deepEqual(reactions, []);
});

test('changes between the start and the reaction are not lost', async () => {
  const { clock, manager, reactions, react, put, wait } = setUp();
  put(node());
  manager.synced('nodes');
  await wait();
  manager.remove('nodes', node());
  await clock.advance(60_000);
  react();
  assert.deepEqual(reactions, ['fatal: node "n1" was deleted']);
});

test('onZone is called when the zone label is added, changed or removed, and only then', async () => {
  const { reactions, started, put } = setUp();
  await started(node(zone('za')));
  assert.deepEqual(reactions, ['zone: za']);
  put(node(zone('za')));
  put(node(zone('zb')));
  put(node());
  put(node());
  put(node(zone('')));
  assert.deepEqual(reactions, ['zone: za', 'zone: zb', 'zone: undefined', 'zone: ']);
});

test('stop() ends a wait and the reactions, and leaves no timer', async () => {
  const waiting = setUp();
  waiting.manager.synced('nodes');
  void waiting.wait();
  await waiting.clock.advance(1_500);
  waiting.manager.stop();
  await waiting.clock.advance(0);
  assert.match(waiting.outcome.error ?? '', /stopped waiting for node "n1"/);
  assert.equal(waiting.clock.pending, 0);
  const reacting = setUp();
  await reacting.started(node());
  reacting.manager.stop();
  reacting.manager.remove('nodes', node());
  assert.deepEqual(reacting.reactions, []);
});

test('react() before waitForNode() throws', () => {
  assert.throws(() => setUp().react(), /waitForNode/);
});
