import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Ledger } from './ledger.ts';

const timesOf = (ledger: Ledger) => [...ledger.take().triggerTimes.values()].flat();

test('while nothing is acknowledged, the first 50,000 trigger times are kept', () => {
  const ledger = new Ledger();
  for (let time = 1; time <= 60_000; time++) ledger.recordTriggerTime(`a/s${time % 7}`, time);
  assert.equal(timesOf(ledger).length, 50_000);
  assert.equal(Math.max(...timesOf(ledger)), 50_000);
});

test('what is acknowledged or discarded makes room for later trigger times', () => {
  const ledger = new Ledger();
  for (let time = 1; time <= 50_000; time++) ledger.recordTriggerTime(`a/s${time % 2}`, time);
  ledger.discardTriggerTimes('a/s1');
  ledger.recordTriggerTime('a/x', 70_000);
  assert.equal(timesOf(ledger).length, 25_001);
  const delta = ledger.take();
  ledger.recordTriggerTime('a/x', 80_000);
  ledger.acknowledge(delta);
  assert.deepEqual(timesOf(ledger), [80_000]);
  for (let time = 1; time <= 60_000; time++) ledger.recordTriggerTime('a/x', time);
  assert.equal(timesOf(ledger).length, 50_000);
});
