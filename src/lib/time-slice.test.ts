import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FakeClock } from '../../test/fake-clock.ts';
import { TimeSlice } from './time-slice.ts';

test('a spent time slice yields for one turn of the event loop and starts again', async () => {
  const clock = new FakeClock();
  const timeSlice = new TimeSlice(clock, 10);
  await clock.advance(9);
  assert.equal(timeSlice.isSpent, false);
  await clock.advance(1);
  assert.equal(timeSlice.isSpent, true);
  let hadTurn = false;
  setImmediate(() => {
    hadTurn = true;
  });
  await timeSlice.yield();
  assert.ok(hadTurn);
  assert.equal(timeSlice.isSpent, false);
});
