import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FakeClock } from '../../../test/fake-clock.ts';
import { FakePrograms } from '../../../test/iptables/fake-programs.ts';
import { CommandError } from '../../kernel/iptables/command-error.ts';
import { Commands } from '../../kernel/iptables/commands.ts';
import { silentLogger } from '../../obs/log.ts';
import type { SyncRequest } from '../backend.ts';
import { Census } from './census.ts';
import type { RuleWatcher } from './rule-watch.ts';
import { type SyncingBackend, WatchedBackend } from './watched-backend.ts';

const request: SyncRequest = { plans: new Map(), changed: new Set(), serviceCIDRs: [], totalEndpoints: 0 };
const busy = new CommandError('iptables-restore', [], { status: 4, timedOut: false, output: 'xtables lock' });

function fixture(sync: (attempt: number) => Promise<void> = async () => {}) {
  const clock = new FakeClock();
  const requests: SyncRequest['changed'][] = [];
  const log: string[] = [];
  const programs = new FakePrograms();
  let watcher: RuleWatcher | undefined;
  const backend: SyncingBackend = {
    family: 'IPv4',
    skipsHourlySync: true,
    sync: async ({ changed }) => {
      requests.push(changed);
      await sync(requests.length);
      return { refused: [] };
    },
    close: async () => void log.push('backend closed'),
  };
  const watched = new WatchedBackend({
    backend,
    commands: new Commands({ family: 'IPv4', run: programs.run, clock, logger: silentLogger }),
    census: new Census(),
    metrics: { repairs: { inc: (labels) => void log.push(`counted ${labels?.object}`) } },
    logger: silentLogger,
    clock,
    syncPeriod: 30_000,
    watch: (to) => {
      watcher = to;
      return () => {
        watcher = undefined;
      };
    },
    nodePorts: {
      addresses: { list: async () => [], watch: () => ({ close() {} }) },
      relevant: undefined,
    },
    requestFullSync: () => void log.push('full sync'),
    onClose: async () => void log.push('closed'),
  });
  return { clock, requests, log, programs, watched, watcher: () => watcher };
}

test('nothing is touched or watched before the first sync', async () => {
  const f = fixture();
  await f.clock.advance(60_000);
  assert.deepEqual([f.programs.commands, f.watcher()], [[], undefined]);
  await f.watched.sync(request);
  assert.ok(f.watcher());
  await f.clock.advance(0);
  assert.equal(f.programs.commands.length, 3, 'the canary is planted');
  assert.ok(f.watched.skipsHourlySync);
  await f.watched.close();
  assert.equal(f.watcher(), undefined);
  assert.deepEqual(f.log, ['backend closed', 'closed']);
  assert.equal(f.clock.pending, 0);
});

test('damage is counted and leads to a full sync, and the canary is planted again', async () => {
  const f = fixture();
  await f.watched.sync(request);
  await f.clock.advance(0);
  f.watcher()?.onDamage({ objects: new Map([['rule deleted', 2]]), by: 'iptables[7]' });
  f.watcher()?.onDamage({ objects: new Map([['rule deleted', 1]]), by: 'iptables[8]' });
  await f.clock.advance(200);
  assert.deepEqual(f.log, ['counted rule deleted', 'full sync']);
  assert.equal(f.programs.commands.length, 6);
  await f.watched.close();
});

test('while others hold the lock a sync is tried again, with everything', async () => {
  const f = fixture((attempt) => (attempt < 3 ? Promise.reject(busy) : Promise.resolve()));
  await f.watched.sync(request);
  assert.deepEqual(f.requests, [request.changed, 'all', 'all']);
  await f.watched.close();
});

test('a lock that never comes, and any other failure, is the failure of the sync', async () => {
  const locked = fixture(() => Promise.reject(busy));
  await assert.rejects(locked.watched.sync(request), busy);
  assert.equal(locked.requests.length, 3);
  await locked.watched.close();
  const refused = fixture(() => Promise.reject(new Error('refused')));
  await assert.rejects(refused.watched.sync(request), /refused/);
  assert.equal(refused.requests.length, 1);
  await refused.watched.close();
});
