import assert from 'node:assert/strict';
import { test } from 'node:test';
import { planOf } from '../../../test/cluster/plans.ts';
import { FakeTables } from '../../../test/iptables/fake-tables.ts';
import { settingsOf } from '../../../test/iptables/harness.ts';
import { compileService } from './compile.ts';
import { CompiledServices } from './compiled-services.ts';
import { findCulprits } from './trial.ts';

const settings = settingsOf('IPv4');
const services = Array.from({ length: 500 }, (_, i) => {
  const endpoints = i % 2 === 0 ? [{ ip: `10.244.${i >> 8}.${i & 255}` }] : [];
  const plan = planOf(
    { name: `web-${i}`, portName: 'x', clusterIP: `10.96.${i >> 8}.${i & 255}` },
    endpoints,
  );
  return compileService(plan, settings, { comments: true, countLocalhost: true });
});

const all = new CompiledServices(services);

async function refusedBy(texts: readonly string[], suspect?: string) {
  const tables = new FakeTables();
  for (const text of texts) tables.refuse.push({ text, at: 'COMMIT' });
  const refused = await findCulprits(all, suspect, settings, tables);
  // The last restore clears up.
  return { keys: [...refused.keys()].sort(), trials: tables.restores.length - 1, tables };
}

test('finds service ports by their own rules and by those in shared chains', async () => {
  const { keys, trials, tables } = await refusedBy([
    '10.244.0.100:8080',
    '"default/web-77:x has no endpoints"',
  ]);
  assert.deepEqual(keys, ['default/web-100:x/TCP', 'default/web-77:x/TCP']);
  assert.ok(trials < 40, String(trials));
  for (const input of tables.restores)
    assert.doesNotMatch(input, /KUBE-(SERVICES|NODEPORTS|EXTERNAL-SERVICES)/);
  for (const table of ['filter', 'nat'] as const) assert.ok(!tables.tables[table].has('KUBE-SVC-TRIAL'));
});

test('a suspect is enough when it is guilty, and only then', async () => {
  const guilty = await refusedBy(['10.244.0.100:8080'], 'default/web-100:x/TCP');
  assert.deepEqual(guilty.keys, ['default/web-100:x/TCP']);
  assert.equal(guilty.trials, 1);
  const innocent = await refusedBy(['10.244.0.100:8080'], 'default/web-102:x/TCP');
  assert.deepEqual(innocent.keys, ['default/web-100:x/TCP']);
});

test('finds nobody when nobody is refused', async () => {
  const { keys, trials } = await refusedBy([]);
  assert.deepEqual(keys, []);
  assert.equal(trials, 1);
});

test('gives up looking closely when nearly everything is refused', async () => {
  const { keys, trials } = await refusedBy(['-j DNAT', '-j REJECT']);
  assert.equal(keys.length, services.length);
  assert.ok(trials <= 200, String(trials));
});

test('passes on failures that are no refusal', async () => {
  const tables = new FakeTables();
  tables.failNext.set('restore', new Error('no lock'));
  await assert.rejects(findCulprits(all, undefined, settings, tables), /no lock/);
});
