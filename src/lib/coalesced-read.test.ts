import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { CoalescedRead } from './coalesced-read.ts';

/** A coalesced read whose reads end when the test says so; each yields its number. */
function controlledRead() {
  const ends: { resolve: () => void; reject: (error: Error) => void }[] = [];
  const read = new CoalescedRead(() => {
    const number = ends.length;
    return new Promise<number>((resolve, reject) => ends.push({ resolve: () => resolve(number), reject }));
  });
  return { read, ends };
}

test('callers at the same time share a read, callers during a read share the next one', async () => {
  const { read, ends } = controlledRead();
  const first = [read.get(), read.get()];
  await setImmediate();
  const others = [read.get(), read.get()];
  await setImmediate();
  assert.equal(ends.length, 1);
  ends[0]?.resolve();
  assert.deepEqual(await Promise.all(first), [0, 0]);
  await setImmediate();
  const late = read.get();
  ends[1]?.resolve();
  assert.deepEqual(await Promise.all(others), [1, 1]);
  await setImmediate();
  ends[2]?.resolve();
  assert.equal(await late, 2);
});

test('a failed read fails for the callers that share it and for no others', async () => {
  const { read, ends } = controlledRead();
  const first = read.get();
  await setImmediate();
  const second = read.get();
  ends[0]?.reject(new Error('no'));
  await assert.rejects(first, /no/);
  await setImmediate();
  ends[1]?.resolve();
  assert.equal(await second, 1);
});

test('no result is kept after the read', async () => {
  const { read, ends } = controlledRead();
  for (const number of [0, 1, 2]) {
    const reading = read.get();
    await setImmediate();
    ends[number]?.resolve();
    assert.equal(await reading, number);
  }
});
