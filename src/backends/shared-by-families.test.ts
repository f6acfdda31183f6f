import assert from 'node:assert/strict';
import { test } from 'node:test';
import { SharedByFamilies } from './shared-by-families.ts';

/** Sockets by the order in which they were opened, and which of them were closed. */
function fixture() {
  const shared = new SharedByFamilies<number>();
  const closed: number[] = [];
  let opened = 0;
  return {
    shared,
    closed,
    acquire: () => shared.acquire(async () => ++opened),
    release: () => shared.release((socket) => void closed.push(socket)),
  };
}

test('both families get the same resource, and the last release closes it', async () => {
  const { shared, closed, acquire, release } = fixture();
  assert.deepEqual(await Promise.all([acquire(), acquire()]), [1, 1]);
  await release();
  assert.deepEqual(closed, []);
  assert.ok(shared.isHeld);
  await release();
  assert.deepEqual(closed, [1]);
  assert.ok(!shared.isHeld);
});

test('a caller during the release gets a new resource', async () => {
  const { closed, acquire, release } = fixture();
  await acquire();
  const releasing = release();
  assert.equal(await acquire(), 2);
  await releasing;
  assert.deepEqual(closed, [1]);
  await release();
  assert.deepEqual(closed, [1, 2]);
});

test('a caller that waits for the resource to open keeps it open', async () => {
  const { closed, acquire, release } = fixture();
  await acquire();
  const waiting = acquire();
  await release();
  assert.equal(await waiting, 1);
  assert.deepEqual(closed, []);
});

test('a failed opening is retried by the next caller, and a late failure does not affect that one', async () => {
  const { shared, closed, acquire, release } = fixture();
  const refused = Promise.withResolvers<number>();
  const early = shared.acquire(() => refused.promise);
  refused.reject(new Error('EPERM'));
  // Runs between the two failures: `early` hears of it first, `late` last.
  const again = Promise.resolve().then(acquire);
  const late = shared.acquire(() => assert.fail('one is being opened'));
  await assert.rejects(early, /EPERM/);
  await assert.rejects(late, /EPERM/);
  assert.equal(await again, 1);
  assert.ok(shared.isHeld);
  await release();
  assert.deepEqual(closed, [1]);
});

test('a release without an acquire closes nothing', async () => {
  const { closed, release } = fixture();
  await release();
  assert.deepEqual(closed, []);
});

test('a failed close is an error, and the next caller gets a new resource', async () => {
  const { shared, acquire } = fixture();
  await acquire();
  await assert.rejects(
    shared.release(() => assert.fail('EIO')),
    /EIO/,
  );
  assert.equal(await acquire(), 2);
});
