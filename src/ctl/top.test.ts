import assert from 'node:assert/strict';
import { test } from 'node:test';
import { API_VERSION, type CountersReport } from '../inspect/api.ts';
import { ratesOf, topText } from './top.ts';

function counters(time: string, counts: Record<string, number | undefined>): CountersReport {
  return {
    apiVersion: API_VERSION,
    kind: 'Counters',
    mode: 'userspace',
    time,
    families: [{ family: 'IPv4', error: null }],
    items: Object.entries(counts).map(([service, connections]) => ({
      service,
      family: 'IPv4',
      connections,
      packets: undefined,
      bytes: connections === undefined ? undefined : connections * 100,
    })),
  };
}

const before = counters('2026-01-01T00:00:00Z', { quiet: 50, busy: 10, restarted: 90, uncounted: undefined });
const after = counters('2026-01-01T00:00:02Z', {
  quiet: 50,
  busy: 30,
  restarted: 4,
  uncounted: undefined,
  fresh: 2,
});

test('rates are per second, the busiest first; a counter that was reset counts from zero', () => {
  assert.deepEqual(
    ratesOf(before, after).map(({ service, connectionsPerSecond }) => [service, connectionsPerSecond]),
    [
      ['busy', 10],
      ['restarted', 2],
      ['fresh', 1],
      ['quiet', 0],
      ['uncounted', undefined],
    ],
  );
});

test('a quantity that the mode does not count is shown as a dash', () => {
  const [heading, busy] = topText(ratesOf(before, after)).split('\n');
  assert.match(heading ?? '', /^SERVICE PORT +FAMILY +CONNECTIONS\/S +PACKETS\/S +BYTES\/S +CONNECTIONS$/);
  assert.match(busy ?? '', /^busy +IPv4 +10\.0 +- +1000\.0 +30$/);
});
