import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FakeClock } from '../../test/fake-clock.ts';
import { RateLimiter, rateLimiterFor } from './rate-limiter.ts';

test('a burst passes at once, then one at a time', async () => {
  const clock = new FakeClock();
  const limiter = new RateLimiter(5, 3, clock);
  const start = clock.now();
  const passed: number[] = [];
  for (let i = 0; i < 6; i++) void limiter.take().then(() => passed.push(clock.now() - start));
  await clock.advance(1000);
  assert.deepEqual(passed, [0, 0, 0, 200, 400, 600]);
  await clock.advance(10_000);
  const waits = await Promise.all([limiter.take(), limiter.take(), limiter.take()]);
  assert.deepEqual(waits, [0, 0, 0], 'idle time fills the bucket, to the brim only');
  const fourth = limiter.take();
  await clock.advance(200);
  assert.equal(await fourth, 200);
});

test('an aborted wait gives its token back', async () => {
  const clock = new FakeClock();
  const limiter = new RateLimiter(1, 1, clock);
  await limiter.take();
  const abort = new AbortController();
  const given = assert.rejects(limiter.take(abort.signal), /enough/);
  abort.abort(new Error('enough'));
  await given;
  const next = limiter.take();
  await clock.advance(1000);
  assert.equal(await next, 1000);
});

test('zero QPS means the defaults, negative QPS no limit', async () => {
  const clock = new FakeClock();
  assert.equal(rateLimiterFor(-1, 0, clock), undefined);
  assert.throws(() => rateLimiterFor(5, 0, clock), /burst is required to be greater than 0/);
  const byDefault = rateLimiterFor(0, 0, clock);
  assert.ok(byDefault);
  for (let i = 0; i < 10; i++) assert.equal(await byDefault.take(), 0);
  const next = byDefault.take();
  await clock.advance(200);
  assert.equal(await next, 200);
});
