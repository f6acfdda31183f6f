import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { eventually } from '../../../test/eventually.ts';
import { FakeClock } from '../../../test/fake-clock.ts';
import { type Logger, silentLogger } from '../../obs/log.ts';
import { DirectoryWatcher } from './watcher.ts';

function setUp(t: TestContext, subdirectory = '') {
  const directory = mkdtempSync(join(tmpdir(), 'kpt-watcher-'));
  const clock = new FakeClock();
  const causes: string[] = [];
  const logged: string[] = [];
  const logger: Logger = { ...silentLogger, error: (_, message) => logged.push(message) };
  const watcher = new DirectoryWatcher({
    directory: join(directory, subdirectory),
    clock,
    logger,
    onChange: (cause) => causes.push(cause),
  });
  t.after(() => {
    watcher.close();
    rmSync(directory, { recursive: true });
  });
  watcher.start();
  let writes = 0;
  const write = () => writeFileSync(join(directory, 'a.yaml'), `${writes++}`);
  return { clock, causes, logged, watcher, write };
}

test('events are told together when the directory has been quiet for a moment', async (t) => {
  const { clock, causes, write } = setUp(t);
  write();
  write();
  await eventually('an event', () => clock.pending >= 2);
  await sleep(50);
  await clock.advance(99);
  assert.equal(causes.length, 0);
  await clock.advance(1);
  assert.deepEqual(causes, ['event']);
});

test('a directory that is never quiet is told about nevertheless', async (t) => {
  const { clock, causes, write } = setUp(t);
  for (let i = 0; i < 25 && causes.length === 0; i++) {
    write();
    await sleep(20);
    await clock.advance(60);
  }
  assert.deepEqual(causes, ['event']);
});

test('without any event it still says now and then that it is time to look', async (t) => {
  const { clock, causes, watcher } = setUp(t);
  await clock.advance(25_000);
  assert.deepEqual(causes, ['poll', 'poll']);
  watcher.close();
  assert.equal(clock.pending, 0);
});

test('a directory that cannot be watched is logged once and polled', async (t) => {
  const { clock, causes, logged } = setUp(t, 'missing');
  await clock.advance(30_000);
  assert.deepEqual(causes, ['poll', 'poll', 'poll']);
  assert.deepEqual(logged, ['Cannot watch the manifests; looking at them now and then']);
});
