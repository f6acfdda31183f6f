import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { eventually } from '../../test/eventually.ts';
import { FakeClock } from '../../test/fake-clock.ts';
import { PathWatcher } from './path-watcher.ts';

function setUp(t: TestContext, watch?: () => never) {
  const directory = mkdtempSync(join(tmpdir(), 'kpt-watcher-'));
  const clock = new FakeClock();
  const causes: string[] = [];
  const errors: string[] = [];
  const watcher = new PathWatcher({
    path: directory,
    clock,
    pollMs: 10_000,
    onChange: (cause) => causes.push(cause),
    onError: (error) => errors.push(error.message),
    ...(watch && { watch }),
  });
  t.after(() => {
    watcher.close();
    rmSync(directory, { recursive: true });
  });
  watcher.start();
  let writes = 0;
  const write = () => writeFileSync(join(directory, 'a.yaml'), `${writes++}`);
  return { directory, clock, causes, errors, watcher, write };
}

test('events are reported together once the directory is quiet', async (t) => {
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

test('events in a directory that is never quiet are reported within a second', async (t) => {
  const { clock, causes, write } = setUp(t);
  for (let i = 0; i < 25 && causes.length === 0; i++) {
    write();
    await sleep(20);
    await clock.advance(60);
  }
  assert.deepEqual(causes, ['event']);
});

test('a poll is reported every 10 s without any event', async (t) => {
  const { clock, causes, watcher } = setUp(t);
  await clock.advance(25_000);
  assert.deepEqual(causes, ['poll', 'poll']);
  watcher.close();
  assert.equal(clock.pending, 0);
});

test('a directory that cannot be watched is reported once and polled', async (t) => {
  const { clock, causes, errors } = setUp(t, () => {
    throw new Error('no inotify watches left');
  });
  await clock.advance(30_000);
  assert.deepEqual(causes, ['poll', 'poll', 'poll']);
  assert.deepEqual(errors, ['no inotify watches left']);
});

test('a directory that is replaced is watched again', async (t) => {
  const { clock, causes, directory, write } = setUp(t);
  for (let i = 1; i <= 3; i++) {
    rmSync(directory, { recursive: true });
    mkdirSync(directory);
    await eventReported(clock, causes, 2 * i - 1);
    write();
    await eventReported(clock, causes, 2 * i);
  }
});

/** Lets real events arrive and the quiet time pass; less than until the next poll. */
async function eventReported(clock: FakeClock, causes: readonly string[], count: number): Promise<void> {
  await eventually(`event ${count}`, () => {
    if (clock.pending > 1) void clock.advance(100);
    return causes.length >= count;
  });
  assert.deepEqual(new Set(causes), new Set(['event']));
}
