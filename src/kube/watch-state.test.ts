import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { FakeClock } from '../../test/fake-clock.ts';
import { ConnectError, IdleError } from './api-error.ts';
import { WatchState } from './watch-state.ts';

const away = new ConnectError('connect ECONNREFUSED');

/** The state of a watch, with times in seconds from the beginning. */
function setUp() {
  const clock = new FakeClock();
  const begin = clock.now();
  const watch = new WatchState('services', clock);
  const look = () => {
    const { state, since, reason } = watch.status();
    return [state, (since - begin) / 1000, reason];
  };
  const wait = (seconds: number) => clock.advance(seconds * 1000);
  /** A streamed list, after which the watch goes on. */
  const connect = () => {
    watch.received();
    watch.listed();
    watch.opened();
    watch.received();
  };
  const fail = (error: Error) => {
    watch.ended(error);
    watch.failed(error);
  };
  return { watch, look, wait, connect, fail };
}

describe('a watch', () => {
  test('is connected while the server is silent', async () => {
    const { look, wait, connect } = setUp();
    connect();
    await wait(140);
    assert.deepEqual(look(), ['connected', 0, undefined]);
  });

  test('that the server ended and that reconnects is never broken', async () => {
    const { watch, look, wait, connect } = setUp();
    connect();
    await wait(400);
    watch.ended(undefined);
    assert.deepEqual(look(), ['connecting', 400, undefined]);
    watch.opened();
    await wait(1);
    assert.deepEqual(look(), ['connected', 400, undefined]);
  });

  test('is broken 15 s after the connection was lost, and connected again with the first event', async () => {
    const { watch, look, wait, connect, fail } = setUp();
    connect();
    await wait(100);
    fail(away);
    await wait(14);
    assert.deepEqual(look(), ['connecting', 100, 'connect ECONNREFUSED']);
    await wait(1);
    assert.deepEqual(look(), ['broken', 100, 'connect ECONNREFUSED']);
    fail(away);
    assert.deepEqual(look(), ['broken', 100, 'connect ECONNREFUSED']);
    watch.opened();
    watch.received();
    assert.deepEqual(look(), ['connected', 115, undefined]);
  });

  test('that never connected is broken since the start', async () => {
    const { look, wait, fail } = setUp();
    fail(away);
    await wait(20);
    assert.deepEqual(look(), ['broken', 0, 'connect ECONNREFUSED']);
  });

  test('that the server accepts and closes at once is broken', async () => {
    const { watch, look, wait, connect, fail } = setUp();
    connect();
    await wait(100);
    for (let i = 0; i < 4; i++) {
      fail(new Error('the server closed the watch at once'));
      await wait(5);
      watch.opened();
    }
    assert.deepEqual(look(), ['broken', 100, 'the server closed the watch at once']);
  });

  test('lost without notice is stale since the last sign of the server', async () => {
    const { look, wait, connect, fail } = setUp();
    connect();
    await wait(150);
    fail(new IdleError('nothing received for 150 s'));
    assert.deepEqual(look(), ['broken', 0, 'nothing received for 150 s']);
  });

  test('whose first list takes long is not broken while objects arrive', async () => {
    const { watch, look, wait } = setUp();
    for (let i = 0; i < 10; i++) {
      await wait(10);
      watch.received();
    }
    assert.deepEqual(look(), ['connecting', 0, undefined]);
  });

  test('that fails after a complete list is current until that list', async () => {
    const { watch, look, wait, fail } = setUp();
    fail(away);
    await wait(30);
    watch.received();
    watch.listed();
    fail(away);
    await wait(15);
    assert.deepEqual(look(), ['broken', 30, 'connect ECONNREFUSED']);
  });
});
