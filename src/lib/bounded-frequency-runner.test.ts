import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FakeClock } from '../../test/fake-clock.ts';
import { BoundedFrequencyRunner } from './bounded-frequency-runner.ts';

const SECOND = 1000;

function harness(overrides: { minInterval?: number; retryInterval?: number; maxInterval?: number } = {}) {
  const clock = new FakeClock(0);
  const runs: number[] = [];
  const errors: unknown[] = [];
  const behaviour = { fail: false, takes: 0 };
  const runner = new BoundedFrequencyRunner({
    minInterval: SECOND,
    retryInterval: 30 * SECOND,
    maxInterval: 3600 * SECOND,
    ...overrides,
    clock,
    onError: (error) => errors.push(error),
    work: async () => {
      runs.push(clock.now());
      if (behaviour.takes > 0) await new Promise<void>((done) => clock.setTimeout(done, behaviour.takes));
      if (behaviour.fail) throw new Error('refused');
    },
  });
  return { clock, runs, errors, behaviour, runner };
}

test('the first request runs at once, later ones wait out the minimum interval', async () => {
  const { clock, runs, runner } = harness();
  runner.start();
  runner.request();
  await clock.advance(100);
  runner.request();
  runner.request();
  await clock.advance(2 * SECOND);
  assert.deepEqual(runs, [0, 1000]);
});

test('the minimum interval is measured from completion, and requests during a run are remembered', async () => {
  const { clock, runs, behaviour, runner } = harness();
  behaviour.takes = 500;
  runner.start();
  runner.request();
  await clock.advance(200);
  runner.request();
  await clock.advance(5 * SECOND);
  assert.deepEqual(runs, [0, 1500]);
});

test('a failed run is retried after the retry interval; success cancels the retry', async () => {
  const { clock, runs, errors, behaviour, runner } = harness();
  behaviour.fail = true;
  runner.start();
  runner.request();
  await clock.advance(30 * SECOND);
  assert.deepEqual(runs, [0, 30_000]);
  assert.equal(errors.length, 2);
  behaviour.fail = false;
  runner.request();
  await clock.advance(60 * SECOND);
  assert.deepEqual(runs, [0, 30_000, 31_000]);
});

test('a retry interval shorter than the minimum is effectively the minimum', async () => {
  const { clock, runs, behaviour, runner } = harness({ retryInterval: 100 });
  behaviour.fail = true;
  runner.start();
  runner.request();
  await clock.advance(2500);
  assert.deepEqual(runs, [0, 1000, 2000]);
});

test('without any request it runs after the maximum interval, counted from the last run', async () => {
  const { clock, runs, runner } = harness({ maxInterval: 10 * SECOND });
  runner.start();
  await clock.advance(4 * SECOND);
  runner.request();
  await clock.advance(25 * SECOND);
  assert.deepEqual(runs, [4000, 14_000, 24_000]);
});

test('a zero minimum interval runs again right after the previous run', async () => {
  const { clock, runs, behaviour, runner } = harness({ minInterval: 0 });
  behaviour.takes = 10;
  runner.start();
  runner.request();
  await clock.advance(5);
  runner.request();
  await clock.advance(100);
  assert.deepEqual(runs, [0, 10]);
});

test('a request before start is served at start', async () => {
  const { clock, runs, runner } = harness();
  runner.request();
  await clock.advance(5 * SECOND);
  assert.deepEqual(runs, []);
  runner.start();
  await clock.advance(1);
  assert.deepEqual(runs, [5000]);
});

test('an urgent request does not wait out the minimum interval, nor does one made during a run', async () => {
  const { clock, runs, behaviour, runner } = harness();
  runner.start();
  runner.request();
  await clock.advance(100);
  runner.requestNow();
  await clock.advance(1);
  behaviour.takes = 50;
  runner.requestNow();
  await clock.advance(10);
  runner.requestNow();
  await clock.advance(60);
  assert.deepEqual(runs, [0, 100, 101, 151]);
  runner.request();
  await clock.advance(900);
  assert.deepEqual(runs, [0, 100, 101, 151]);
});

test('a pause waits for the run under way and holds back requests; new intervals count from the next run on', async () => {
  const { clock, runs, behaviour, runner } = harness();
  behaviour.takes = 100;
  runner.start();
  runner.request();
  let isPaused = false;
  const pausing = runner.pause().then(() => {
    isPaused = true;
  });
  await clock.advance(50);
  assert.equal(isPaused, false);
  await clock.advance(50);
  await pausing;
  runner.requestNow();
  await clock.advance(10 * SECOND);
  assert.deepEqual(runs, [0]);
  runner.setIntervals({ minInterval: 5 * SECOND, retryInterval: SECOND, maxInterval: 3600 * SECOND });
  runner.resume();
  await clock.advance(100);
  runner.request();
  await clock.advance(10 * SECOND);
  assert.deepEqual(runs, [0, 10_100, 15_200]);
});

test('stop waits for the run under way and leaves no timer behind', async () => {
  const { clock, runs, behaviour, runner } = harness();
  behaviour.takes = 300;
  runner.start();
  runner.request();
  await clock.advance(100);
  let stopped = false;
  const stopping = runner.stop().then(() => {
    stopped = true;
  });
  await clock.advance(100);
  assert.equal(stopped, false);
  await clock.advance(200);
  await stopping;
  runner.request();
  await clock.advance(7200 * SECOND);
  assert.deepEqual(runs, [0]);
  assert.equal(clock.pending, 0);
});

test('a maximum interval below the minimum is a programming error', () => {
  assert.throws(() => harness({ maxInterval: 10 }), /maxInterval 10 ms is shorter than minInterval 1000 ms/);
});
