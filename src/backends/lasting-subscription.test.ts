import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FakeClock } from '../../test/fake-clock.ts';
import { LogRecorder } from '../../test/log-recorder.ts';
import { LastingSubscription } from './lasting-subscription.ts';

function fixture(open: (attempt: number) => void = () => {}) {
  const clock = new FakeClock();
  const log = new LogRecorder();
  const events: string[] = [];
  let attempts = 0;
  let lose: (error: unknown) => void = () => assert.fail('nothing is open');
  const subscription = new LastingSubscription({
    topic: 'weather changes',
    open: (onLost) => {
      open(++attempts);
      lose = onLost;
      const name = `subscription ${attempts}`;
      return { name, close: () => void events.push(`close ${name}`) };
    },
    onReopened: () => void events.push('reopened'),
    clock,
    logger: log,
    details: { table: 'ip sky' },
  });
  const current = () => subscription.current?.name;
  return { clock, log, events, subscription, current, lose: (error: Error) => lose(error) };
}

test('a lost subscription is logged, and opened again after five seconds', async () => {
  const { clock, log, events, current, lose } = fixture();
  assert.equal(current(), 'subscription 1');
  lose(new Error('socket'));
  assert.equal(current(), undefined);
  assert.deepEqual(log.lines, [
    {
      message: 'No subscription to weather changes; trying again',
      error: 'Error: socket',
      attributes: { table: 'ip sky' },
    },
  ]);
  await clock.advance(4_999);
  assert.deepEqual(events, ['close subscription 1']);
  await clock.advance(1);
  assert.deepEqual(events, ['close subscription 1', 'reopened']);
  assert.equal(current(), 'subscription 2');
});

test('a subscription that cannot be opened is tried every five seconds', async () => {
  const { clock, log, events, current } = fixture((attempt) => {
    if (attempt < 3) throw new Error('no socket');
  });
  await clock.advance(10_000);
  assert.deepEqual([log.lines.length, events], [2, ['reopened']]);
  assert.equal(current(), 'subscription 3');
});

test('a closed subscription stays closed, also when it is lost afterwards', async () => {
  const { clock, log, events, subscription, lose } = fixture();
  subscription.close();
  lose(new Error('socket'));
  assert.deepEqual([events, log.lines, clock.pending], [['close subscription 1'], [], 0]);
});
