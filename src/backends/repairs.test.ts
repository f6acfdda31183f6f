import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FakeClock } from '../../test/fake-clock.ts';
import { LogRecorder } from '../../test/log-recorder.ts';
import { RepairBudget } from './repair-budget.ts';
import { Repairs } from './repairs.ts';

function fixture(costMs = 10) {
  const clock = new FakeClock();
  let cpu = 0;
  const requestedAt: number[] = [];
  const counted: string[] = [];
  const log = new LogRecorder();
  const start = clock.monotonic();
  const repairs = new Repairs({
    family: 'IPv4',
    subject: 'table kube-proxy',
    budget: new RepairBudget(clock, () => cpu),
    clock,
    logger: log,
    metrics: {
      repairs: { inc: (labels, by) => void counted.push(`repairs ${labels?.ip_family} ${by ?? 1}`) },
      changedObjects: { inc: (labels, by) => void counted.push(`${labels?.object} ${by ?? 1}`) },
    },
    request: () => void requestedAt.push(clock.monotonic() - start),
  });
  /** A sync that takes no time on the clock. */
  const sync = (hasSucceeded = true) => {
    const suspects = repairs.begin();
    cpu += costMs;
    repairs.end(hasSucceeded);
    return suspects;
  };
  return { clock, repairs, requestedAt, counted, log, sync };
}

const flush = { objects: new Map([['table deleted', 1]]), by: 'nft[42]' };
const elements = {
  objects: new Map([['element deleted', 3]]),
  by: 'nft[42]',
  suspects: new Set(['frontends']),
};

test('a change by another program is repaired at once, counted and logged', () => {
  const { repairs, requestedAt, counted, log, clock, sync } = fixture();
  repairs.changed(elements);
  assert.deepEqual(requestedAt, [0]);
  assert.deepEqual(repairs.wrong, { since: clock.now(), by: 'nft[42]', changes: 'element deleted: 3' });
  assert.deepEqual(sync(), new Set(['frontends']));
  assert.equal(repairs.wrong, undefined);
  assert.deepEqual(counted, ['element deleted 3', 'repairs IPv4 1']);
  assert.deepEqual(repairs.record, {
    count: 1,
    wrongMs: 0,
    last: { at: clock.now(), by: 'nft[42]', changes: 'element deleted: 3' },
  });
  assert.equal(log.lines.length, 1);
});

test('after a repair the next one waits four times as long as it took, and says until when', async () => {
  const { clock, repairs, requestedAt, sync } = fixture(100);
  repairs.changed(flush);
  sync();
  await clock.advance(150);
  repairs.changed(flush);
  const since = clock.now();
  assert.deepEqual(repairs.wrong, { since, dueAt: since + 250, by: 'nft[42]', changes: 'table deleted: 1' });
  await clock.advance(100);
  repairs.changed({ ...elements, by: 'nft[43]' });
  assert.deepEqual(repairs.wrong, {
    since,
    dueAt: since + 250,
    by: 'nft[43]',
    changes: 'element deleted: 3',
  });
  await clock.advance(150);
  assert.deepEqual(requestedAt, [0, 400]);
  assert.equal(repairs.wrong?.dueAt, undefined);
  assert.equal(sync(), 'everything');
  assert.equal(repairs.record.wrongMs, 250);
});

test('a change during a repair is repaired by the next one, after the pause', async () => {
  const { clock, repairs, requestedAt } = fixture();
  repairs.changed(flush);
  repairs.begin();
  repairs.changed(elements);
  repairs.end(true);
  assert.equal(repairs.wrong?.changes, 'element deleted: 3');
  assert.deepEqual(requestedAt, [0]);
  await clock.advance(20);
  assert.deepEqual(requestedAt, [0, 20]);
  assert.deepEqual(repairs.begin(), new Set(['frontends']));
});

test('rules stay wrong after a repair that fails, which is retried at growing intervals', async () => {
  const { clock, repairs, requestedAt, sync } = fixture();
  const since = clock.now();
  repairs.changed(flush);
  for (let i = 0; i < 3; i++) {
    sync(false);
    assert.equal(repairs.wrong?.since, since);
    await clock.advance(5_000);
  }
  assert.deepEqual(requestedAt, [0, 1000, 7000, 14_000]);
  sync();
  assert.equal(repairs.wrong, undefined);
  assert.equal(repairs.record.wrongMs, 15_000);
});

test('the time for which rules were wrong is the same when the clock is set meanwhile', async () => {
  const { clock, repairs, sync } = fixture();
  repairs.changed(flush);
  sync(false);
  await clock.advance(500);
  clock.setWall(-86_400_000);
  assert.equal(repairs.wrong?.since, clock.now() - 500);
  assert.equal(repairs.wrong?.dueAt, clock.now() + 500);
  assert.equal(repairs.record.wrongMs, 500);
  await clock.advance(500);
  sync();
  assert.equal(repairs.record.wrongMs, 1_000);
  clock.setWall(86_400_000);
  assert.equal(repairs.record.last?.at, clock.now());
});

test('rules are not known to be wrong when events were lost, but they are repaired', () => {
  const { repairs, requestedAt, sync } = fixture();
  repairs.changed({ objects: new Map(), by: 'unknown' });
  assert.equal(repairs.wrong, undefined);
  assert.deepEqual(requestedAt, [0]);
  assert.equal(sync(), 'everything');
});

test('repairs go on when the CPU time cannot be read at the beginning of one, or at its end', async () => {
  for (const readings of [
    [undefined, 900_000],
    [900_000, undefined],
    [undefined, undefined],
  ]) {
    const clock = new FakeClock();
    const budget = new RepairBudget(clock, () => readings.shift());
    budget.begin();
    await clock.advance(100);
    assert.equal(budget.end(), 100);
    assert.equal(budget.waitMs, 400);
  }
});

test('two families together take no more than the budget', async () => {
  const clock = new FakeClock();
  let cpu = 0;
  const budget = new RepairBudget(clock, () => cpu);
  budget.begin();
  budget.begin();
  cpu += 30;
  assert.equal(budget.end(), 30);
  cpu += 10;
  assert.equal(budget.end(), 10);
  assert.equal(budget.waitMs, 160);
  await clock.advance(160);
  assert.equal(budget.waitMs, 0);
});

test('a fight has a line when it begins, a summary every ten seconds and a line when it is over', async () => {
  const { clock, repairs, log, sync } = fixture(100);
  for (let i = 0; i < 40; i++) {
    repairs.changed(flush);
    if (repairs.isRequested) sync();
    await clock.advance(500);
  }
  assert.equal(repairs.fight?.by, 'nft[42]');
  await clock.advance(20_000);
  assert.equal(repairs.fight, undefined);
  assert.deepEqual(
    log.lines.map(({ message }) => message),
    [
      ...Array(3).fill('Table kube-proxy was changed by another program; repairing'),
      'Another program keeps changing table kube-proxy; repairs take at most 20 % of a core',
      ...Array(2).fill('Another program still changes table kube-proxy; repaired'),
      'No other program has changed table kube-proxy for 10 s',
    ],
  );
  const summaries = log.lines.slice(4).map(({ attributes }) => [attributes?.times, attributes?.repairs]);
  // Three of the 40 changes came before the fight.
  assert.deepEqual(summaries.at(-1), [37, 37]);
  assert.equal(Number(summaries[0]?.[0]) + Number(summaries[1]?.[0]), 37);
  assert.equal(clock.pending, 0);
});

test('every long pause has a log line', async () => {
  const { clock, repairs, log, sync } = fixture(2_000);
  repairs.changed(flush);
  sync();
  repairs.changed(flush);
  await clock.advance(8_000);
  sync();
  repairs.changed(flush);
  const pauses = log.lines.filter(({ message }) => message.includes('after a pause'));
  assert.equal(pauses.length, 2);
  repairs.close();
  assert.equal(clock.pending, 0);
});

test('close cancels a pending repair', async () => {
  const { clock, repairs, requestedAt, sync } = fixture();
  repairs.changed(flush);
  sync();
  repairs.changed(flush);
  repairs.close();
  await clock.advance(60_000);
  assert.deepEqual(requestedAt, [0]);
  assert.equal(clock.pending, 0);
});
