import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FakeClock } from '../../test/fake-clock.ts';
import { formatRFC3339 } from './healthz-server.ts';
import { ProxyHealth } from './proxy-health.ts';

const seconds = 1000;

/** Families whose syncs are overdue. */
function overdue(health: ProxyHealth): (string | undefined)[] {
  return health.problems().map(({ family }) => family);
}

test('a family is overdue only if it synced before and a request has waited longer than the timeout', async () => {
  const clock = new FakeClock();
  const health = new ProxyHealth(clock, 60 * seconds);
  assert.deepEqual([...health.lastUpdated()], []);

  health.queued('IPv4');
  await clock.advance(3600 * seconds);
  assert.deepEqual(overdue(health), [], 'never synced: not counted');

  health.updated('IPv4');
  await clock.advance(3600 * seconds);
  assert.deepEqual(overdue(health), [], 'nothing was asked for');

  health.queued('IPv4');
  await clock.advance(59 * seconds);
  health.queued('IPv4');
  await clock.advance(1 * seconds - 1);
  assert.deepEqual(overdue(health), []);
  await clock.advance(1);
  assert.deepEqual(overdue(health), ['IPv4'], 'counted from the first request, not the latest');
  health.updated('IPv4');
  assert.deepEqual(overdue(health), []);
});

test('families are independent and listed IPv4 first', async () => {
  const clock = new FakeClock();
  const health = new ProxyHealth(clock, 60 * seconds);
  health.updated('IPv6');
  await clock.advance(seconds);
  health.updated('IPv4');
  health.queued('IPv6');
  await clock.advance(60 * seconds);
  const now = clock.now();
  assert.deepEqual(
    [...health.lastUpdated()],
    [
      ['IPv4', now - 60 * seconds],
      ['IPv6', now - 61 * seconds],
    ],
  );
  assert.deepEqual(health.problems(), [
    {
      kind: 'SyncOverdue',
      family: 'IPv6',
      since: now - 60 * seconds,
      isOutage: true,
      text: 'changes are not written to the kernel',
    },
  ]);
});

test('times are formatted like RFC3339Nano of Go', () => {
  const at = Date.UTC(2026, 10, 15, 3, 50, 0, 0);
  const table: [ms: number, offset: number, text: string][] = [
    [at, 0, '2026-11-15T03:50:00Z'],
    [at + 120, 0, '2026-11-15T03:50:00.12Z'],
    [at + 7, 0, '2026-11-15T03:50:00.007Z'],
    [at + 100, 330, '2026-11-15T09:20:00.1+05:30'],
    [at, -210, '2026-11-15T00:20:00-03:30'],
    [at, 60, '2026-11-15T04:50:00+01:00'],
  ];
  for (const [ms, offset, text] of table) assert.equal(formatRFC3339(ms, offset), text);
});
