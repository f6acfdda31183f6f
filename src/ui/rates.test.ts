import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { TrafficItem, TrafficReport } from '../inspect/traffic-api.ts';
import { figuresText, openedToEndpoints, Rates, shortNumber } from './rates.ts';

const failed = { rejected: 0, dropped: 0, filtered: 0, reset: 1, unanswered: 2 };

function item(opened: number, bytes: number | null): TrafficItem {
  const packets = { packetsToEndpoint: null, packetsToClient: null };
  const figures = {
    opened,
    ended: 0,
    open: 1,
    ...packets,
    bytesToEndpoint: bytes,
    bytesToClient: bytes,
    failed,
  };
  const subject = { service: 'shop/web:http/TCP', family: 'IPv4', client: null } as const;
  return { ...subject, endpoint: null, pod: null, zone: null, expectedShare: null, ...figures };
}

function report(second: number, items: readonly TrafficItem[], since = 'then'): TrafficReport {
  return {
    apiVersion: 'inspect.kube-proxy-ts/v1',
    kind: 'Traffic',
    mode: 'nftables',
    time: new Date(second * 1000).toISOString(),
    since,
    by: 'service',
    lostEvents: 0,
    leftOut: 0,
    families: [],
    items,
  };
}

const key = 'shop/web:http/TCP IPv4';

test('a rate is the difference of two reports over the time between them', () => {
  const rates = new Rates();
  assert.equal(rates.update(report(0, [item(10, 500)])).get(key)?.connections, 0);
  const now = rates.update(report(2, [item(16, 1500)])).get(key);
  const expected = {
    connections: 3,
    bytes: 1000,
    open: 1,
    opened: 16,
    failing: 0,
    history: [3],
    failures: [3, 3],
  };
  assert.deepEqual(now, expected);
});

test('there is no rate over a new beginning of the count, and none of bytes that nobody counts', () => {
  const rates = new Rates();
  rates.update(report(0, [item(10, null)]));
  const now = rates.update(report(2, [item(3, null)], 'later')).get(key);
  assert.deepEqual([now?.connections, now?.bytes, now?.history], [0, undefined, []]);
});

test('endpoints fail while refused and unanswered connections become more', () => {
  const rates = new Rates();
  rates.update(report(0, [item(10, null)]));
  const worse = { ...item(12, null), failed: { ...failed, unanswered: 4 } };
  assert.equal(rates.update(report(2, [worse])).get(key)?.failing, 2);
  for (let i = 2; i <= 31; i++) rates.update(report(2 * i, [worse]));
  assert.equal(rates.update(report(64, [worse])).get(key)?.failing, 0);
});

test('failures of a Service that had no traffic before are new ones', () => {
  const rates = new Rates();
  rates.update(report(0, []));
  assert.equal(rates.update(report(2, [item(3, null)])).get(key)?.failing, 3);
});

test('an endpoint is told with its share of the connections that got one', () => {
  const got = { ...item(3, null), endpoint: '10.244.0.5:8080', failed: { ...failed, unanswered: 0 } };
  const none = { ...item(7, null), endpoint: null };
  const other = { ...item(9, null), endpoint: '10.244.0.6:8080' };
  assert.equal(openedToEndpoints([got, none, other]), 12);
  assert.equal(figuresText(got, 12), '1 open, measured 25.0 % of 12, 1 failed');
  assert.equal(figuresText({ ...got, failed: { ...failed, reset: 0, unanswered: 0 } }, 0), '1 open');
});

test('numbers are short', () => {
  const values = [0, 0.25, 3, 3.44, 42.4, 812, 1234, 34_000, 999_950, 2_500_000_000];
  assert.deepEqual(values.map(shortNumber), [
    '0',
    '0.3',
    '3',
    '3.4',
    '42',
    '812',
    '1.2k',
    '34k',
    '1.0M',
    '2.5G',
  ]);
});
