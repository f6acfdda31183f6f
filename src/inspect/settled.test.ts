import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FakeClock } from '../../test/fake-clock.ts';
import { compareSettled } from './settled.ts';
import { idle, inspectedFamily } from './testing.ts';

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

test('what differs while nothing moves differs', async () => {
  const { compare, comparisons } = harness();
  assert.deepEqual(await compare(() => true), { result: true, settled: true });
  assert.equal(comparisons(), 1);
});

test('what differs because a sync came in between is looked at again', async () => {
  const { activity, compare, comparisons } = harness();
  const outcome = await compare((attempt) => {
    if (attempt === 1) activity.syncs++;
    return attempt === 1;
  });
  assert.deepEqual(outcome, { result: false, settled: true });
  assert.equal(comparisons(), 2);
});

test('waits for a sync under way, within reason', async () => {
  const { clock, activity, compare, comparisons } = harness();
  activity.isSyncing = true;
  const outcome = compare(() => true);
  await clock.advance(1_000);
  assert.equal(comparisons(), 0);
  activity.isSyncing = false;
  await clock.advance(1_000);
  assert.deepEqual(await outcome, { result: true, settled: true });
});

test('gives up on a proxy that never stands still, and says so', async () => {
  const { clock, activity, compare, comparisons } = harness();
  activity.isSyncing = true;
  const outcome = compare(() => true);
  await clock.advance(60_000);
  assert.deepEqual(await outcome, { result: true, settled: false });
  assert.equal(comparisons(), 4);
});
