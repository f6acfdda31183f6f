import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FakeClock } from '../../test/fake-clock.ts';
import { FailedEndpoints } from './failed-endpoints.ts';

test('an endpoint that failed a client is remembered for 10 s after the last failure', async () => {
  const clock = new FakeClock();
  const failures = new FailedEndpoints(clock);
  assert.ok(failures.isEmpty);
  failures.add('10.1.0.1', 'a');
  await clock.advance(9_000);
  failures.add('10.1.0.1', 'b');
  assert.deepEqual(failures.of('10.1.0.1'), new Set(['a', 'b']));
  assert.equal(failures.of('10.1.0.2'), undefined);
  await clock.advance(10_000);
  assert.equal(failures.of('10.1.0.1'), undefined);
  assert.ok(failures.isEmpty);
});
