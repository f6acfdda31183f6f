import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FakeClock } from '../../test/fake-clock.ts';
import { type Report, Reports } from './reports.ts';

test('a problem is reported at once, its repetitions later with a count, and other problems are not delayed', async () => {
  const clock = new FakeClock();
  const emitted: Report[] = [];
  const reports = new Reports(clock, (report) => emitted.push(report));
  for (const detail of ['1', '2', '3']) reports.add('endpoint', detail);
  reports.add('files', 'x');
  await clock.advance(10_000);
  reports.add('endpoint', '4');
  assert.deepEqual(emitted, [
    { problem: 'endpoint', detail: '1', times: 1 },
    { problem: 'files', detail: 'x', times: 1 },
    { problem: 'endpoint', detail: '4', times: 3 },
  ]);
});
