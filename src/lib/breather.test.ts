import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Breather } from './breather.ts';
import { FakeClock } from './fake-clock.ts';

test('work that takes long rests for a turn of the event loop, and begins anew', async () => {
  const clock = new FakeClock();
  const breather = new Breather(clock);
  assert.equal(breather.isDue, false);
  await clock.advance(10);
  assert.equal(breather.isDue, true);
  let hadTurn = false;
  setImmediate(() => {
    hadTurn = true;
  });
  await breather.rest();
  assert.ok(hadTurn);
  assert.equal(breather.isDue, false);
});
