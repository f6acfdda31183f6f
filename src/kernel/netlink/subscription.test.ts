import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { FakeClock } from '../../../test/fake-clock.ts';
import { FakeNetlink, fakeMessage, overrunError } from '../../../test/kernel/fake-netlink.ts';
import type { Clock } from '../../lib/clock.ts';
import { SystemError } from '../../native/system-error.ts';
import { subscribe } from './subscription.ts';

const notification = (type: number) => fakeMessage({ type, sequence: 0, port: 99 });

function connect() {
  const kernel = new FakeNetlink();
  const log: string[] = [];
  const subscription = subscribe(kernel, [7, 8], {
    message: ({ type, port }) => log.push(`message ${type} of ${port}`),
    overrun: () => log.push('overrun'),
    failed: (error) => log.push(`failed ${error.message}`),
  });
  return { kernel, log, subscription };
}

test('a subscription delivers messages in order, also after an overrun', () => {
  const { kernel, log } = connect();
  assert.deepEqual([...kernel.groups], [7, 8]);
  kernel.emit(Buffer.concat([notification(1), notification(2)]), overrunError(), notification(3));
  assert.deepEqual(log, ['message 1 of 99', 'message 2 of 99', 'overrun', 'message 3 of 99']);
});

test('a subscription ignores datagrams that are not from the kernel', () => {
  const { kernel, log } = connect();
  kernel.emit({ bytes: notification(1), sender: 555 }, notification(2));
  assert.deepEqual(log, ['message 2 of 99']);
});

test('a subscription reports failure when the socket fails or a datagram is malformed', () => {
  for (const fault of [new SystemError('recvfrom', 9), Uint8Array.of(1, 2)]) {
    const { kernel, log } = connect();
    kernel.emit(fault, notification(1));
    assert.equal(log.length, 1);
    assert.match(log[0] ?? '', /^failed /);
    assert.ok(kernel.closed);
    assert.equal(kernel.watchers, 0);
  }
});

test('a closed subscription delivers nothing, even in the middle of a burst', () => {
  const kernel = new FakeNetlink();
  const seen: number[] = [];
  const subscription = subscribe(kernel, [7], {
    message: ({ type }) => {
      seen.push(type);
      subscription.close();
    },
    overrun: assert.fail,
    failed: assert.fail,
  });
  kernel.emit(notification(1), notification(2));
  assert.deepEqual(seen, [1]);
  assert.ok(kernel.closed);
});

test('a subscription receives a bounded number of datagrams per event-loop turn', () => {
  const { kernel, log } = connect();
  kernel.emit(...Array.from({ length: 100 }, () => notification(1)));
  assert.equal(log.length, 64);
  kernel.emit();
  assert.equal(log.length, 100);
});

test('a paused subscription leaves its groups', () => {
  const { kernel, subscription } = connect();
  subscription.pause();
  assert.deepEqual([...kernel.groups], []);
  subscription.resume();
  assert.deepEqual([...kernel.groups], [7, 8]);
  subscription.close();
  subscription.pause();
  subscription.resume();
  assert.deepEqual([...kernel.groups], [7, 8]);
});

test('a subscription that cannot join a group throws and closes the transport', () => {
  const kernel = new FakeNetlink();
  kernel.join = () => {
    throw new SystemError('setsockopt', 1);
  };
  const handler = { message() {}, overrun() {}, failed() {} };
  assert.throws(() => subscribe(kernel, [7], handler), /EPERM/);
  assert.ok(kernel.closed);
});

test('a subscription with rests receives notifications together, and is drained at once when asked', async () => {
  const kernel = new FakeNetlink();
  const clock = new FakeClock();
  let seen = 0;
  const handler = { message: () => void seen++, overrun: () => assert.fail(), failed: () => assert.fail() };
  const subscription = subscribe(kernel, [1], handler, { ms: 50, clock });
  const event = () => fakeMessage({ type: 256, sequence: 0, port: 0 });
  kernel.emit(event());
  assert.equal(seen, 1);
  kernel.emit(event(), event());
  assert.equal(seen, 1);
  await clock.advance(50);
  assert.equal(seen, 3);
  kernel.emit(...Array.from({ length: 3_000 }, event));
  await subscription.drained();
  assert.equal(seen, 3_003);
  subscription.close();
  assert.deepEqual([clock.pending, kernel.watchers], [0, 0]);
});

test('a subscription with rests lets other work run when notifications take long', async () => {
  const kernel = new FakeNetlink();
  const clock = new FakeClock();
  let seen = 0;
  const handler = { message: () => void seen++, overrun: () => assert.fail(), failed: () => assert.fail() };
  const slow: Clock = {
    now: () => clock.now(),
    // Each notification takes a millisecond.
    monotonic: () => seen,
    setTimeout: (run, ms) => clock.setTimeout(run, ms),
  };
  const subscription = subscribe(kernel, [1], handler, { ms: 50, clock: slow });
  kernel.emit(...Array.from({ length: 100 }, () => fakeMessage({ type: 256, sequence: 0, port: 0 })));
  assert.equal(seen, 16);
  await nextTurn();
  assert.equal(seen, 32);
  await subscription.drained();
  assert.equal(seen, 100);
  subscription.close();
  assert.deepEqual([clock.pending, kernel.watchers], [0, 0]);
});

test('a subscription that is closed between two turns receives nothing more', async () => {
  const kernel = new FakeNetlink();
  let seen = 0;
  const handler = { message: () => void seen++, overrun: () => assert.fail(), failed: () => assert.fail() };
  const clock: Clock = { ...new FakeClock(), now: () => 0, monotonic: () => seen, setTimeout: assert.fail };
  const subscription = subscribe(kernel, [1], handler, { ms: 50, clock });
  kernel.emit(...Array.from({ length: 100 }, () => fakeMessage({ type: 256, sequence: 0, port: 0 })));
  subscription.close();
  await nextTurn();
  assert.equal(seen, 16);
});

test('a subscription is drained also when the last datagram ends a turn of the event loop', async () => {
  const kernel = new FakeNetlink();
  let seen = 0;
  const handler = { message: () => void seen++, overrun: () => assert.fail(), failed: () => assert.fail() };
  const subscription = subscribe(kernel, [1], handler);
  kernel.emit(...Array.from({ length: 128 }, () => fakeMessage({ type: 256, sequence: 0, port: 0 })));
  await subscription.drained();
  assert.equal(seen, 128);
  subscription.close();
});
