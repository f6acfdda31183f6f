import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { LoopClock } from './loop-clock.ts';

function make() {
  const time = { ms: 1_000 };
  return { time, clock: new LoopClock({ now: () => time.ms, monotonic: () => time.ms }) };
}

test('due timers run in the order of time, cancelled ones do not, and advance returns how long to wait', () => {
  const { time, clock } = make();
  const ran: string[] = [];
  clock.setTimeout(() => ran.push('b'), 20);
  clock.setTimeout(() => ran.push('a'), 10);
  const cancelled = clock.setTimeout(() => ran.push('x'), 5);
  cancelled.cancel();
  assert.equal(clock.advance(100), 10);
  assert.equal(clock.isDue, false);
  time.ms += 25;
  assert.equal(clock.isDue, true);
  assert.equal(clock.advance(100), 100);
  assert.deepEqual(ran, ['a', 'b']);
});

test('a timer set by a timer runs in the same advance if it is due', () => {
  const { clock } = make();
  let runs = 0;
  clock.setTimeout(() => clock.setTimeout(() => runs++, 0), 0);
  clock.advance(100);
  assert.equal(runs, 1);
});

test('timers with random delays run in order', () => {
  fc.assert(
    fc.property(fc.array(fc.nat(1_000), { maxLength: 100 }), (delays) => {
      const { time, clock } = make();
      const ran: number[] = [];
      for (const delay of delays) clock.setTimeout(() => ran.push(delay), delay);
      time.ms += 1_000;
      clock.advance(1);
      assert.deepEqual(
        ran,
        delays.toSorted((a, b) => a - b),
      );
    }),
  );
});
