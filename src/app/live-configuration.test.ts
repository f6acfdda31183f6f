import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FakeClock } from '../../test/fake-clock.ts';
import { defaultConfig } from '../config/defaults.ts';
import type { LivePart } from '../config/live-fields.ts';
import type { ProxyConfig } from '../config/types.ts';
import { silentLogger } from '../obs/log.ts';
import { LiveConfiguration, LostConfigurationError } from './live-configuration.ts';
import type { Start } from './start.ts';

const base: ProxyConfig = { ...defaultConfig(), mode: 'nftables' };

/** A live configuration whose steps are kept in order; `failing` throws in its turn. */
function harness(failing?: { part: LivePart; error: Error }) {
  const log: string[] = [];
  const notes: string[] = [];
  const startWith = (config: ProxyConfig) => ({ completed: { config } }) as unknown as Start;
  const inUse = startWith(base);
  const part = (name: LivePart) => (to: Start) => {
    log.push(`${name} ${to === inUse ? 'former' : 'new'}`);
    if (failing?.part === name) throw failing.error;
  };
  const next = { config: base };
  const live = new LiveConfiguration({
    start: inUse,
    complete: async () => startWith(next.config).completed,
    describe: (completed) => startWith(completed.config),
    undescribe: () => log.push('undescribe'),
    holdsConnections: () => false,
    takeUp: {
      client: part('client'),
      conntrack: part('conntrack'),
      servers: part('servers'),
      rules: part('rules'),
      process: part('process'),
      pages: part('pages'),
      logging: part('logging'),
    },
    journal: { note: ({ event, text }) => notes.push(`${event}: ${text}`) },
    onRejected: (note) => log.push(note),
    onRestart: () => log.push('restart'),
    onLost: () => log.push('lost'),
    clock: new FakeClock(),
    logger: silentLogger,
  });
  const change = (config: Partial<ProxyConfig>) => {
    next.config = { ...base, ...config };
    return live.change({ path: '/c.yaml', text: '', readAt: 0 });
  };
  return { live, log, notes, change };
}

const everything: Partial<ProxyConfig> = {
  nodePortAddresses: ['primary'],
  enableProfiling: true,
  linux: { ...base.linux, oomScoreAdj: 1, conntrack: { ...base.linux.conntrack, min: 1 } },
};

test('the parts that a change concerns take it up in their order, and it becomes the next generation', async () => {
  const { live, log, notes, change } = harness();
  assert.equal(live.status.generation, 1);
  assert.deepEqual(await change(everything), { state: 'InUse' });
  assert.deepEqual(log, ['conntrack new', 'rules new', 'process new', 'pages new']);
  assert.equal(live.status.generation, 2);
  assert.equal(live.status.lastChange?.outcome, 'Applied');
  assert.deepEqual(live.start.completed.config.nodePortAddresses, ['primary']);
  assert.deepEqual(notes, [
    'Configuration: generation 2 is in use; changed: enableProfiling, nodePortAddresses, oomScoreAdj, conntrack.min',
  ]);
});

test('when a part refuses, those before it go back, and the former generation stays', async () => {
  const { live, log, change } = harness({ part: 'process', error: new Error('no room') });
  assert.deepEqual(await change(everything), { state: 'Rejected', reason: 'no room' });
  assert.deepEqual(log, [
    'conntrack new',
    'rules new',
    'process new',
    'undescribe',
    'rules former',
    'conntrack former',
    'Configuration rejected, generation 1 stays in use: no room',
  ]);
  assert.equal(live.start.completed.config.nodePortAddresses, null);
  const { generation, lastChange } = live.status;
  assert.deepEqual([generation, lastChange?.outcome, lastChange?.reason], [1, 'Rejected', 'no room']);
});

test('a change that needs a restart touches no part and names the fields', async () => {
  const { live, log, change } = harness();
  const verdict = await change({ ...everything, mode: 'ipvs' });
  assert.equal(verdict.state, 'Changed');
  assert.deepEqual(log, ['restart']);
  const { generation, lastChange } = live.status;
  assert.deepEqual([generation, lastChange?.outcome, lastChange?.fields], [1, 'RestartNeeded', ['mode']]);
});

test('the program ends when neither configuration works', async () => {
  const { log, change } = harness({ part: 'rules', error: new LostConfigurationError('gone') });
  assert.equal((await change({ nodePortAddresses: ['primary'] })).state, 'Rejected');
  assert.ok(log.includes('lost'));
});

test('a change of comments or of fields that are not in use is a generation without a step', async () => {
  const { live, log, change } = harness();
  assert.deepEqual(await change({}), { state: 'InUse' });
  assert.deepEqual([log, live.status.generation], [[], 2]);
});
