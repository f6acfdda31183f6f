import assert from 'node:assert/strict';
import { test } from 'node:test';
import { none, trafficItem, trafficReport } from '../../test/ctl/traffic-server.ts';
import type { SortKey } from './flags.ts';
import { ratesBetween } from './traffic-rates.ts';

const later = { time: '2026-01-01T00:00:02Z' };

test('rates are the difference of two readings per second', () => {
  const before = trafficReport([trafficItem('web', { opened: 10, bytesToEndpoint: 500, ended: 3 })]);
  const now = trafficReport(
    [
      trafficItem('web', { opened: 30, bytesToEndpoint: 1500, ended: 3, failed: { ...none, reset: 4 } }),
      trafficItem('new', { opened: 2, bytesToEndpoint: null }),
    ],
    later,
  );
  const { items, seconds, kind } = ratesBetween(before, now, 'connections');
  assert.deepEqual([kind, seconds], ['TrafficRates', 2]);
  assert.deepEqual(
    items.map(({ service, perSecond: { opened, ended, failed, bytesToEndpoint } }) => [
      service,
      opened,
      ended,
      failed,
      bytesToEndpoint,
    ]),
    [
      ['web', 10, 0, 2, 500],
      ['new', 1, 0, 0, null],
    ],
  );
});

test('a first reading has no rates', () => {
  const { items, seconds } = ratesBetween(undefined, trafficReport([trafficItem('web')]), 'connections');
  assert.equal(seconds, null);
  assert.equal(items[0]?.perSecond.opened, null);
});

test('figures that began to count again are not compared with earlier ones', () => {
  const before = trafficReport([trafficItem('web', { opened: 10 }), trafficItem('api', { opened: 3 })]);
  const again = { ...later, since: '2026-01-01T00:00:01Z' };
  const now = trafficReport([trafficItem('web', { opened: 12 }), trafficItem('api', { opened: 2 })], again);
  const opened = (report = now) =>
    ratesBetween(before, report, 'connections').items.map(({ perSecond }) => perSecond.opened);
  assert.deepEqual(opened(), [6, 1]);
  // The same count, and a figure that went down: it was forgotten in between.
  assert.deepEqual(opened({ ...now, since: before.since }), [1, 1]);
});

const sorted: readonly [SortKey, readonly string[]][] = [
  ['connections', ['fresh', 'heavy', 'patient', 'broken']],
  ['bytes', ['heavy', 'fresh', 'broken', 'patient']],
  ['open', ['patient', 'fresh', 'heavy', 'broken']],
  ['failed', ['broken', 'fresh', 'heavy', 'patient']],
];

for (const [key, services] of sorted) {
  test(`--sort ${key} puts the most ${key} first`, () => {
    const before = trafficReport([trafficItem('patient', { opened: 1000 })]);
    const now = trafficReport(
      [
        trafficItem('broken', { failed: { ...none, rejected: 9 } }),
        trafficItem('patient', { opened: 1000, open: 50 }),
        trafficItem('heavy', { opened: 10, bytesToClient: 1e6 }),
        trafficItem('fresh', { opened: 20, bytesToEndpoint: 5, open: 1, failed: { ...none, reset: 1 } }),
      ],
      later,
    );
    const { items } = ratesBetween(before, now, key);
    assert.deepEqual(
      items.map(({ service }) => service),
      services,
    );
  });
}

/** The endpoints of a service port, each with its connections and its expected share. */
function shares(...endpoints: readonly (readonly [opened: number, expected: number | null])[]) {
  const items = endpoints.map(([opened, expectedShare], i) =>
    trafficItem('web', { endpoint: `10.244.0.${i}:80`, opened, expectedShare }),
  );
  const other = trafficItem('other', { endpoint: '10.244.0.99:80', opened: 1000, expectedShare: 1 });
  const refused = trafficItem('web', { opened: 0, failed: { ...none, rejected: 5000 } });
  const report = trafficReport([...items, other, refused], { by: 'endpoint' });
  return ratesBetween(undefined, report, 'connections')
    .items.filter(({ service, endpoint }) => service === 'web' && endpoint !== null)
    .map(({ measuredShare, skewed }) => [measuredShare, skewed]);
}

test('the measured share of an endpoint is its part of the connections of the service port', () => {
  assert.deepEqual(shares([60, 0.5], [40, 0.5]), [
    [0.6, false],
    [0.4, false],
  ]);
  assert.deepEqual(shares([0, 1]), [[null, false]]);
});

test('a share is skewed only when chance does not explain it', () => {
  assert.deepEqual(shares([600, 0.5], [400, 0.5]), [
    [0.6, true],
    [0.4, true],
  ]);
  assert.deepEqual(shares([3, 0.5], [0, 0.5])[0], [1, false]);
  // An endpoint that takes no new connections any more.
  assert.deepEqual(shares([10, 1], [10, 0])[1], [0.5, true]);
  assert.deepEqual(shares([10, 1], [10, null])[1], [0.5, false]);
});
