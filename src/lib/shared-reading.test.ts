import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { SharedReading } from './shared-reading.ts';

/** Readings that end when told, each with its number. */
function readings() {
  const ends: { resolve: () => void; reject: (error: Error) => void }[] = [];
  const shared = new SharedReading(() => {
    const number = ends.length;
    return new Promise<number>((resolve, reject) => ends.push({ resolve: () => resolve(number), reject }));
  });
  return { shared, ends };
}

test('who asks together shares a reading, who asks while one is under way shares the next', async () => {
  const { shared, ends } = readings();
  const first = [shared.get(), shared.get()];
  await setImmediate();
  const others = [shared.get(), shared.get()];
  await setImmediate();
  assert.equal(ends.length, 1);
  ends[0]?.resolve();
  assert.deepEqual(await Promise.all(first), [0, 0]);
  await setImmediate();
  const late = shared.get();
  ends[1]?.resolve();
  assert.deepEqual(await Promise.all(others), [1, 1]);
  await setImmediate();
  ends[2]?.resolve();
  assert.equal(await late, 2);
});

test('one that fails fails for those who share it, and nobody else', async () => {
  const { shared, ends } = readings();
  const first = shared.get();
  await setImmediate();
  const second = shared.get();
  ends[0]?.reject(new Error('no'));
  await assert.rejects(first, /no/);
  await setImmediate();
  ends[1]?.resolve();
  assert.equal(await second, 1);
});

test('nothing is kept', async () => {
  const { shared, ends } = readings();
  for (const number of [0, 1, 2]) {
    const reading = shared.get();
    await setImmediate();
    ends[number]?.resolve();
    assert.equal(await reading, number);
  }
});
