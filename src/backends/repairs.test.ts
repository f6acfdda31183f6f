import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FakeClock } from '../../test/fake-clock.ts';
import { type Logger, silentLogger } from '../obs/log.ts';
import type { Labels } from '../obs/metrics.ts';
import { Repairs } from './repairs.ts';

function fixture() {
  const clock = new FakeClock();
  const repairedAt: number[] = [];
  const counted: [Labels | undefined, number | undefined][] = [];
  const lines: string[] = [];
  const logger: Logger = { ...silentLogger, info: (message) => void lines.push(message) };
  const start = clock.monotonic();
  const repairs = new Repairs({
    family: 'IPv4',
    subject: 'table kube-proxy',
    clock,
    logger,
    repairs: { inc: (labels, by) => void counted.push([labels, by]) },
    repair: () => void repairedAt.push(clock.monotonic() - start),
  });
  return { clock, repairs, repairedAt, counted, lines };
}

const flush = { objects: new Map([['table deleted', 1]]), by: 'nft[42]' };

test('a change by another program is repaired at once, counted and logged', () => {
  const { repairs, repairedAt, counted, lines } = fixture();
  repairs.changed({ objects: new Map([['element deleted', 3]]), by: 'nft[42]' });
  assert.deepEqual(repairedAt, [0]);
  assert.deepEqual(counted, [[{ ip_family: 'IPv4', object: 'element deleted' }, 3]]);
  assert.equal(lines.length, 1);
});

test('repeated changes lead to growing pauses before repairs, and to one more log line', async () => {
  const { clock, repairs, repairedAt, lines } = fixture();
  for (let second = 0; second < 20; second++) {
    repairs.changed(flush);
    await clock.advance(1000);
  }
  assert.deepEqual(repairedAt, [0, 1000, 2000, 4000, 6000, 10000, 18000]);
  assert.equal(lines.filter((line) => line.includes('keeps changing')).length, 1);
  assert.equal(lines.length, 4);
});

test('after a quiet minute repairs are immediate again', async () => {
  const { clock, repairs, repairedAt } = fixture();
  for (let i = 0; i < 3; i++) repairs.changed(flush);
  await clock.advance(61_000);
  repairs.changed(flush);
  assert.equal(repairedAt.at(-1), 61_000);
});

test('close cancels a pending repair', async () => {
  const { clock, repairs, repairedAt } = fixture();
  for (let i = 0; i < 4; i++) repairs.changed(flush);
  repairs.close();
  await clock.advance(60_000);
  assert.equal(repairedAt.length, 3);
  assert.equal(clock.pending, 0);
});
