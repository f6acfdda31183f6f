import assert from 'node:assert/strict';
import { hash } from 'node:crypto';
import * as fs from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { eventually } from '../../test/eventually.ts';
import { FakeClock } from '../../test/fake-clock.ts';
import type { Timer } from '../lib/clock.ts';
import { API_VERSION, KIND } from './v1alpha1.ts';
import { type Verdict, watchConfigFile } from './watch.ts';

const head = `apiVersion: ${API_VERSION}\nkind: ${KIND}\n`;
const first = `${head}mode: iptables\n`;
const second = `${head}mode: nftables\n`;
const third = `${head}mode: ipvs\n`;

/** Counts timers: the watch sets one for every event. */
class CountingClock extends FakeClock {
  scheduled = 0;

  override setTimeout(run: () => void, ms: number): Timer {
    this.scheduled++;
    return super.setTimeout(run, ms);
  }
}

/** A directory with a configuration file, and a watch whose reports are kept in order. */
function setUp(t: TestContext, prepare: (directory: string) => void = writeFirst) {
  const directory = fs.realpathSync(fs.mkdtempSync(join(tmpdir(), 'kpt-watch-')));
  prepare(directory);
  const path = join(directory, 'config.conf');
  const clock = new CountingClock();
  const reports: string[] = [];
  const next: { verdict: Verdict } = { verdict: { state: 'InUse' } };
  const watch = watchConfigFile(path, {
    content: first,
    readAt: clock.now(),
    clock,
    onChange: async () => {
      reports.push('changed');
      return next.verdict;
    },
    onError: (error) => reports.push(error.message),
  });
  t.after(() => {
    watch.close();
    fs.rmSync(directory, { recursive: true, force: true });
  });
  return { directory, path, clock, reports, watch, next };
}

type Watched = ReturnType<typeof setUp>;

function writeFirst(directory: string): void {
  fs.writeFileSync(join(directory, 'config.conf'), first);
}

/** Writes so that no look at the file that is under way can see half of it. */
function replace(path: string, text: string): void {
  fs.writeFileSync(`${path}.new`, text);
  fs.renameSync(`${path}.new`, path);
}

/** Waits for the real file system, and for nothing else: time stands still in these tests. */
function noticed({ clock }: Watched): Promise<void> {
  return eventually('an event of the file system', () => clock.pending > 0, { everyMs: 2 });
}

/** Lets events arrive and the quiet time after each pass, until something is so. */
function inTime({ clock }: Watched, what: string, isSo: () => boolean): Promise<void> {
  const pass = () => {
    if (clock.pending > 0) void clock.advance(100);
    return isSo();
  };
  return eventually(what, pass, { everyMs: 2 });
}

async function nextReport(watched: Watched): Promise<string | undefined> {
  const { reports } = watched;
  const seen = reports.length;
  await inTime(watched, 'a report', () => reports.length > seen);
  return reports.at(-1);
}

test('a write in place is reported', async (t) => {
  const watched = setUp(t);
  watched.watch.start();
  fs.writeFileSync(watched.path, second);
  assert.equal(await nextReport(watched), 'changed');
  fs.appendFileSync(watched.path, 'enableProfiling: true\n');
  assert.equal(await nextReport(watched), 'changed');
  assert.deepEqual(watched.reports, ['changed', 'changed']);
});

test('a rename over the file is reported, and so is a write to the new one', async (t) => {
  const watched = setUp(t);
  watched.watch.start();
  replace(watched.path, second);
  assert.equal(await nextReport(watched), 'changed');
  fs.appendFileSync(watched.path, 'enableProfiling: true\n');
  assert.equal(await nextReport(watched), 'changed');
});

/** As the kubelet lays out a ConfigMap volume. */
function publish(directory: string, version: string, text: string): void {
  fs.mkdirSync(join(directory, version));
  fs.writeFileSync(join(directory, version, 'config.conf'), text);
  fs.symlinkSync(version, join(directory, '..data_tmp'));
  fs.renameSync(join(directory, '..data_tmp'), join(directory, '..data'));
}

test('every swap of a ConfigMap volume is reported', async (t) => {
  const watched = setUp(t, (directory) => {
    publish(directory, '..1', first);
    fs.symlinkSync('..data/config.conf', join(directory, 'config.conf'));
  });
  watched.watch.start();
  for (const [version, text, previous] of [
    ['..2', second, '..1'],
    ['..3', third, '..2'],
  ] as const) {
    publish(watched.directory, version, text);
    fs.rmSync(join(watched.directory, previous), { recursive: true });
    assert.equal(await nextReport(watched), 'changed');
  }
  assert.deepEqual(watched.reports, ['changed', 'changed']);
});

test('the same content, a touch or another file is not a change', async (t) => {
  const watched = setUp(t);
  watched.watch.start();
  const changes = [
    () => fs.writeFileSync(watched.path, first, { flag: 'r+' }),
    () => fs.utimesSync(watched.path, 1, 1),
    () => fs.chmodSync(watched.path, 0o600),
    () => replace(watched.path, first),
  ];
  for (const change of changes) {
    await watched.clock.advance(1000);
    change();
    await noticed(watched);
  }
  await watched.clock.advance(1000);
  // The next report shows that none was made before it.
  replace(watched.path, 'mode: {');
  assert.match((await nextReport(watched)) ?? '', /^yaml: /);
  assert.equal(watched.reports.length, 1);
});

test('a deleted file is reported once, and watched when it comes back', async (t) => {
  const watched = setUp(t);
  watched.watch.start();
  fs.rmSync(watched.path);
  const missing = `open ${watched.path}: no such file or directory`;
  assert.equal(await nextReport(watched), missing);
  replace(watched.path, first);
  await noticed(watched);
  await watched.clock.advance(1000);
  replace(watched.path, second);
  assert.equal(await nextReport(watched), 'changed');
  assert.deepEqual(watched.reports, [missing, 'changed']);
});

test('a directory that is removed and created again is watched', async (t) => {
  const watched = setUp(t);
  watched.watch.start();
  fs.renameSync(watched.directory, `${watched.directory}-old`);
  t.after(() => fs.rmSync(`${watched.directory}-old`, { recursive: true }));
  assert.equal(await nextReport(watched), `open ${watched.path}: no such file or directory`);
  fs.mkdirSync(`${watched.directory}-new`);
  fs.writeFileSync(join(`${watched.directory}-new`, 'config.conf'), second);
  fs.renameSync(`${watched.directory}-new`, watched.directory);
  assert.equal(await nextReport(watched), 'changed');
});

test('a half-written file is reported once and used when it is complete', async (t) => {
  const watched = setUp(t);
  watched.watch.start();
  fs.truncateSync(watched.path);
  assert.equal(await nextReport(watched), "Object 'Kind' is missing in ''");
  replace(watched.path, `${head}mode: nft`);
  assert.match(
    (await nextReport(watched)) ?? '',
    /^KubeProxyConfiguration\.Mode\.ProxyMode: Invalid value: "nft"/,
  );
  fs.utimesSync(watched.path, 1, 1);
  await noticed(watched);
  await watched.clock.advance(1000);
  replace(watched.path, second);
  assert.equal(await nextReport(watched), 'changed');
  assert.equal(watched.reports.length, 3);
});

test('a truncation and a write within the quiet time are one change', async (t) => {
  const watched = setUp(t);
  watched.watch.start();
  fs.truncateSync(watched.path);
  fs.writeFileSync(watched.path, second);
  assert.equal(await nextReport(watched), 'changed');
  assert.deepEqual(watched.reports, ['changed']);
});

test('endless writes are examined within a second', async (t) => {
  const watched = setUp(t);
  watched.watch.start();
  const { clock, path, reports } = watched;
  for (let i = 0; i < 200 && reports.length === 0; i++) {
    const { scheduled } = clock;
    replace(path, `${second}# ${i}\n`);
    await eventually('an event of the write', () => clock.scheduled > scheduled, { everyMs: 2 });
    await clock.advance(50);
  }
  assert.equal(reports[0], 'changed');
});

test('a change before start() is reported by start()', async (t) => {
  const watched = setUp(t);
  fs.writeFileSync(watched.path, second);
  await new Promise((resolve) => setTimeout(resolve, 20));
  assert.equal(watched.clock.pending, 0);
  watched.watch.start();
  assert.equal(await nextReport(watched), 'changed');
});

test('nothing is reported after closing', async (t) => {
  const watched = setUp(t);
  watched.watch.start();
  fs.writeFileSync(watched.path, second);
  await noticed(watched);
  watched.watch.close();
  assert.equal(watched.clock.pending, 0);
  fs.writeFileSync(watched.path, third);
  await new Promise((resolve) => setTimeout(resolve, 20));
  await watched.clock.advance(1000);
  assert.deepEqual(watched.reports, []);
});

test('a missing path is watched from its last existing directory', async (t) => {
  const watched = setUp(t, () => {});
  watched.watch.start();
  assert.equal(await nextReport(watched), `open ${watched.path}: no such file or directory`);
  replace(watched.path, second);
  assert.equal(await nextReport(watched), 'changed');
});

test('the status tells whether the file on disk is usable and the one in use', async (t) => {
  const watched = setUp(t);
  const { watch, path } = watched;
  const onDisk = () => watch.status().onDisk;
  watch.start();
  assert.deepEqual(
    [watch.status().path, watch.status().hash, onDisk().state],
    [path, hash('sha256', first), 'InUse'],
  );
  replace(path, 'nonsense');
  const report = await nextReport(watched);
  assert.deepEqual([onDisk().state, onDisk().reason], ['Unusable', report]);
  assert.ok(onDisk().since > watch.status().readAt);
  fs.rmSync(path);
  assert.match((await nextReport(watched)) ?? '', /no such file/);
  assert.equal(onDisk().state, 'Unusable');
  replace(path, first);
  await inTime(watched, 'the file in use', () => onDisk().state === 'InUse');
  watched.next.verdict = { state: 'Changed', reason: 'mode' };
  replace(path, second);
  await nextReport(watched);
  await inTime(watched, 'the verdict', () => onDisk().state === 'Changed');
  assert.deepEqual([watch.status().hash, onDisk().reason], [hash('sha256', first), 'mode']);
});

test('content in use is the content of the last accepted change; a rejected one is offered again after another', async (t) => {
  const watched = setUp(t);
  const { watch, path, next } = watched;
  const settled = (text: string, state: string) =>
    inTime(
      watched,
      state,
      () => watch.status().hash === hash('sha256', text) && watch.status().onDisk.state === state,
    );
  watch.start();
  replace(path, second);
  await nextReport(watched);
  await settled(second, 'InUse');
  next.verdict = { state: 'Rejected', reason: 'no' };
  replace(path, third);
  await nextReport(watched);
  await settled(second, 'Rejected');
  fs.utimesSync(path, 1, 1);
  await noticed(watched);
  await watched.clock.advance(1000);
  assert.equal(watch.status().onDisk.reason, 'no', 'a touch changes nothing');
  replace(path, second);
  await settled(second, 'InUse');
  assert.deepEqual(watched.reports, ['changed', 'changed'], 'the content in use is not offered');
  next.verdict = { state: 'InUse' };
  replace(path, third);
  await nextReport(watched);
  await settled(third, 'InUse');
});
