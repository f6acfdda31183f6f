import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FakeClock } from '../../../test/fake-clock.ts';
import { FakePrograms } from '../../../test/iptables/fake-programs.ts';
import { FakeTables } from '../../../test/iptables/fake-tables.ts';
import { settingsOf } from '../../../test/iptables/harness.ts';
import { Commands } from '../../kernel/iptables/commands.ts';
import { silentLogger } from '../../obs/log.ts';
import { ignoredMetric } from '../../obs/metrics.ts';
import type { SyncRequest } from '../backend.ts';
import { SyncEngine } from '../engine.ts';
import { RepairBudget } from '../repair-budget.ts';
import { IptablesDriver } from './driver.ts';
import type { RuleWatcher } from './rule-watch.ts';
import { RulesetWatch } from './ruleset-watch.ts';
import { WrittenRules } from './written-rules.ts';

const request: SyncRequest = { plans: new Map(), changed: new Set(), serviceCIDRs: [], totalEndpoints: 0 };

/** iptables mode on fake tables, watched by fake programs. */
function fixture() {
  const clock = new FakeClock();
  const log: string[] = [];
  const programs = new FakePrograms();
  const commands = new Commands({ family: 'IPv4', run: programs.run, clock, logger: silentLogger });
  let watcher: RuleWatcher | undefined;
  const changes = {
    watch: (to: RuleWatcher) => {
      watcher = to;
      return () => {
        watcher = undefined;
      };
    },
  };
  const common = { clock, logger: silentLogger };
  const driver = new IptablesDriver({
    ...common,
    settings: settingsOf('IPv4'),
    tables: new FakeTables(),
    metrics: {
      iptablesRestoreFailures: ignoredMetric,
      iptablesPartialRestoreFailures: ignoredMetric,
      iptablesRulesTotal: ignoredMetric,
      iptablesRulesLast: ignoredMetric,
    },
    watch: (onDamage) => {
      const written = new WrittenRules();
      return new RulesetWatch({ ...common, commands, written, changes, interval: 30_000, onDamage });
    },
    onClose: async () => void log.push('closed'),
  });
  const engine = new SyncEngine({
    ...common,
    family: 'IPv4',
    driver,
    retryMs: 0,
    budget: new RepairBudget(clock, () => 0),
    metrics: {
      repairs: ignoredMetric,
      changedObjects: { inc: (labels) => void log.push(`counted ${labels?.object}`) },
    },
    requestSync: () => void log.push('sync'),
  });
  return { clock, log, programs, engine, watcher: () => watcher };
}

test('nothing is touched or watched before the first sync', async () => {
  const f = fixture();
  await f.clock.advance(60_000);
  assert.deepEqual([f.programs.commands, f.watcher()], [[], undefined]);
  await f.engine.sync(request);
  assert.ok(f.watcher());
  await f.clock.advance(0);
  assert.equal(f.programs.commands.length, 1, 'the canary is planted');
  await f.engine.close();
  assert.equal(f.watcher(), undefined);
  assert.deepEqual(f.log, ['closed']);
  assert.equal(f.clock.pending, 0);
});

test('damage is counted and leads to a sync, and the canary is planted again', async () => {
  const f = fixture();
  await f.engine.sync(request);
  await f.clock.advance(0);
  f.watcher()?.onDamage({ objects: new Map([['rule deleted', 2]]), by: 'iptables[7]' });
  f.watcher()?.onDamage({ objects: new Map([['rule deleted', 1]]), by: 'iptables[8]' });
  await f.clock.advance(200);
  assert.deepEqual(f.log, ['counted rule deleted', 'sync']);
  assert.equal(f.programs.commands.length, 2);
  await f.engine.close();
});
