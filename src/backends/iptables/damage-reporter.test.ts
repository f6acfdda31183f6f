import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FakeClock } from '../../../test/fake-clock.ts';
import { FakePrograms } from '../../../test/iptables/fake-programs.ts';
import { Commands } from '../../kernel/iptables/commands.ts';
import { silentLogger } from '../../obs/log.ts';
import { DamageReporter } from './damage-reporter.ts';
import { WrittenRules } from './written-rules.ts';

async function fixture() {
  const clock = new FakeClock();
  const written = new WrittenRules();
  const chains = new Set([':KUBE-SVC-A - [0:0]']);
  const reports: [Record<string, number>, string][] = [];
  let looks = 0;
  const programs = new FakePrograms(() => {
    looks++;
    return { lines: [...chains] };
  });
  const write = (apply: () => Promise<void>) =>
    written.during(['*nat\n:KUBE-SVC-A - [0:0]\nCOMMIT\n'], async (input) => {
      for (const _ of input);
      await apply();
    });
  await write(async () => {});
  const commands = new Commands({ family: 'IPv4', run: programs.run, clock, logger: silentLogger });
  const reporter = new DamageReporter({
    written,
    commands,
    clock,
    logger: silentLogger,
    onDamage: ({ objects, by }) => void reports.push([Object.fromEntries(objects), by]),
  });
  return { clock, chains, reports, reporter, write, looks: () => looks };
}

test('related damage is one report', async () => {
  const { clock, reporter, reports } = await fixture();
  reporter.damaged({ objects: new Map([['rule deleted', 3]]), by: 'a[1]' });
  await clock.advance(50);
  reporter.damaged({ objects: new Map([['rule deleted', 2]]), by: 'b[2]' });
  await clock.advance(50);
  reporter.damaged({ objects: new Map([['chain deleted', 1]]), by: 'c[3]' });
  assert.deepEqual(reports, []);
  await clock.advance(100);
  assert.deepEqual(reports, [[{ 'rule deleted': 5, 'chain deleted': 1 }, 'c[3]']]);
  assert.equal(clock.pending, 0);
});

test('damage that goes on is reported after a second', async () => {
  const { clock, reporter, reports } = await fixture();
  for (let i = 0; i < 12; i++) {
    reporter.damaged({ objects: new Map([['rule deleted', 1]]), by: 'a[1]' });
    await clock.advance(90);
  }
  assert.equal(reports.length, 1);
});

test('one comparison serves many suspicions, and only real damage is reported', async () => {
  const { clock, chains, reporter, reports, looks } = await fixture();
  for (let i = 0; i < 5; i++) reporter.suspect('nft[9]');
  await clock.advance(100);
  assert.deepEqual(reports, []);
  assert.equal(looks(), 1);
  chains.clear();
  reporter.suspect('nft[9]');
  await clock.advance(100);
  assert.deepEqual(reports, [[{ 'chain deleted': 1 }, 'nft[9]']]);
  assert.equal(clock.pending, 0);
});

test('the comparison waits until our own write ends', async () => {
  const { clock, chains, reporter, reports, looks, write } = await fixture();
  let finish = () => {};
  const writing = write(() => new Promise<void>((resolve) => (finish = resolve)));
  reporter.suspect('nft[9]');
  await clock.advance(1_000);
  assert.equal(looks(), 0);
  finish();
  await writing;
  chains.clear();
  await clock.advance(300);
  assert.equal(reports.length, 1);
});

test('nothing is reported after close', async () => {
  const { clock, reporter, reports } = await fixture();
  reporter.damaged({ objects: new Map([['rule deleted', 1]]), by: 'a[1]' });
  reporter.close();
  await clock.advance(5_000);
  assert.deepEqual(reports, []);
  assert.equal(clock.pending, 0);
});
