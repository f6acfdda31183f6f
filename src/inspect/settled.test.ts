import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FakeClock } from '../../test/fake-clock.ts';
import { idle, inspectedFamily } from '../../test/inspected-proxy.ts';
import { compareSettled } from './settled.ts';

function harness() {
  const clock = new FakeClock();
  const activity = idle();
  const { view } = inspectedFamily({ activity }, clock);
  let comparisons = 0;
  const compare = (differs: (attempt: number) => boolean) =>
    compareSettled(
      view,
      clock,
      async () => differs(++comparisons),
      (result) => result,
    );
  return { clock, activity, compare, comparisons: () => comparisons };
}

test('a difference counts when no sync ran meanwhile', async () => {
  const { compare, comparisons } = harness();
  assert.deepEqual(await compare(() => true), { result: true, settled: true });
  assert.equal(comparisons(), 1);
});

test('a comparison is repeated when it differs and a sync ran meanwhile', async () => {
  const { activity, compare, comparisons } = harness();
  const outcome = await compare((attempt) => {
    if (attempt === 1) activity.syncs++;
    return attempt === 1;
  });
  assert.deepEqual(outcome, { result: false, settled: true });
  assert.equal(comparisons(), 2);
});

test('a comparison waits some seconds for a running sync', async () => {
  const { clock, activity, compare, comparisons } = harness();
  activity.isSyncing = true;
  const outcome = compare(() => true);
  await clock.advance(1_000);
  assert.equal(comparisons(), 0);
  activity.isSyncing = false;
  await clock.advance(1_000);
  assert.deepEqual(await outcome, { result: true, settled: true });
});

test('a comparison that syncs disturb every time is not settled', async () => {
  const { clock, activity, compare, comparisons } = harness();
  activity.isSyncing = true;
  const outcome = compare(() => true);
  await clock.advance(60_000);
  assert.deepEqual(await outcome, { result: true, settled: false });
  assert.equal(comparisons(), 4);
});
