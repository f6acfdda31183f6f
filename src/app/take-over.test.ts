import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FakeClock } from '../../test/fake-clock.ts';
import type { Leftover } from '../backends/leftovers.ts';
import { silentLogger } from '../obs/log.ts';
import { TakeOver } from './take-over.ts';

const chain: Leftover = {
  kind: 'iptables chain',
  family: 'IPv4',
  place: 'table nat (iptables-legacy)',
  name: 'KUBE-SERVICES',
  count: 1,
  stuck: 'there is no iptables-legacy here',
};

test('what cannot be removed is a problem with one event, and it is retried until it is gone', async () => {
  const clock = new FakeClock();
  const notes: string[] = [];
  const logged: string[] = [];
  let left: Leftover[] = [chain];
  let attempts = 0;
  const takeOver = new TakeOver({
    remove: async () => {
      attempts++;
      return left;
    },
    announce: (note) => void notes.push(note),
    clock,
    logger: { ...silentLogger, info: (message) => void logged.push(message) },
  });
  assert.deepEqual(takeOver.problems(), []);
  await takeOver.run();
  const [problem] = takeOver.problems();
  assert.deepEqual([problem?.kind, problem?.isOutage, problem?.since], ['LeftoverRules', false, clock.now()]);
  assert.match(problem?.text ?? '', /: 1 iptables chain \(there is no iptables-legacy here\)$/);
  await clock.advance(60_000);
  assert.equal(takeOver.problems().length, 1);
  left = [];
  await clock.advance(60_000);
  assert.deepEqual(takeOver.problems(), []);
  await clock.advance(600_000);
  assert.deepEqual([attempts, notes.length], [3, 1]);
  assert.deepEqual(logged, ['Rules that another mode left are gone']);
});
