import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FakeClock } from '../lib/fake-clock.ts';
import { KernelView } from './kernel-view.ts';
import { inspection } from './testing.ts';

function harness(closing: () => void = () => {}) {
  const clock = new FakeClock();
  const log: string[] = [];
  const view = new KernelView({
    open: async () => {
      log.push('open');
      return inspection({
        close: async () => {
          log.push('close');
          closing();
        },
      });
    },
    clock,
  });
  return { clock, log, view };
}

test('is opened at the first question and closed when none comes for a minute', async () => {
  const { clock, log, view } = harness();
  assert.equal(log.length, 0);
  await view.ask(async () => log.push('first'));
  await clock.advance(59_000);
  await view.ask(async () => log.push('second'));
  await clock.advance(59_000);
  assert.deepEqual(log, ['open', 'first', 'second']);
  await clock.advance(1_000);
  assert.deepEqual(log.slice(3), ['close']);
  await view.ask(async () => log.push('third'));
  assert.deepEqual(log.slice(4), ['open', 'third']);
});

test('answers one question at a time, in their order', async () => {
  const { log, view } = harness();
  const first = Promise.withResolvers<void>();
  const asked = view.ask(() => first.promise.then(() => log.push('first')));
  const next = view.ask(async () => log.push('second'));
  await Promise.resolve();
  first.resolve();
  await Promise.all([asked, next]);
  assert.deepEqual(log, ['open', 'first', 'second']);
});

test('a question that failed leaves nothing behind, and the next one is answered', async () => {
  const { log, view } = harness();
  await assert.rejects(
    view.ask(async () => {
      throw new Error('EPERM');
    }),
    /EPERM/,
  );
  await view.ask(async () => log.push('next'));
  assert.deepEqual(log, ['open', 'close', 'open', 'next']);
});

test("one that cannot be closed is in nobody's way", async () => {
  const { clock, log, view } = harness(() => {
    throw new Error('EBADF');
  });
  await assert.rejects(
    view.ask(async () => {
      throw new Error('EPERM');
    }),
    /EPERM/,
  );
  await view.ask(async () => log.push('next'));
  await clock.advance(60_000);
  await view.ask(async () => log.push('later'));
  assert.deepEqual(log, ['open', 'close', 'open', 'next', 'close', 'open', 'later']);
});

test('a failure to open is told to who asked', async () => {
  const view = new KernelView({
    open: async () => {
      throw new Error('no socket');
    },
    clock: new FakeClock(),
  });
  await assert.rejects(
    view.ask(async () => {}),
    /no socket/,
  );
});

test('refuses to keep many waiting, until some are answered', async () => {
  const { view } = harness();
  const answer = Promise.withResolvers<void>();
  const waiting = Array.from({ length: 16 }, () => view.ask(() => answer.promise));
  await assert.rejects(
    view.ask(async () => {}),
    /16 questions about the kernel wait already/,
  );
  answer.resolve();
  await Promise.all(waiting);
  await view.ask(async () => {});
});
