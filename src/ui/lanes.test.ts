import assert from 'node:assert/strict';
import { test } from 'node:test';
import { serviceReport } from '../../test/service-report.ts';
import type { EndpointReport } from '../inspect/api.ts';
import { geometryOf, lanesOf } from './lanes.ts';

function endpoint(ip: string, expectedShares: { cluster?: number; local?: number } = {}): EndpointReport {
  const usedBy = (['cluster', 'local'] as const).filter((set) => set in expectedShares);
  const ready = usedBy.length > 0;
  const state = { local: usedBy.includes('local'), ready, serving: ready, terminating: false };
  return {
    service: 'shop/web:http/TCP',
    family: 'IPv4',
    endpoint: `${ip}:8080`,
    ...state,
    usedBy,
    ...(ready && { expectedShares }),
    reason: '',
  };
}

const endpoints = [
  endpoint('10.244.0.9'),
  endpoint('10.244.0.5', { cluster: 0.5, local: 1 }),
  endpoint('10.244.1.6', { cluster: 0.5 }),
];

test('clients inside and outside share a lane while the decision is the same', () => {
  const port = serviceReport({ nodePort: 30_080 });
  const { decisions, frontends } = lanesOf({ ...port, external: port.internal }, endpoints, '192.0.2.1');
  assert.deepEqual(
    decisions.map(({ clients }) => clients),
    ['everybody'],
  );
  assert.deepEqual(
    frontends.map(({ address, destination, decision }) => [address, destination, decision]),
    [
      ['10.96.0.10:80', '10.96.0.10:80/TCP', 0],
      [':30080', '192.0.2.1:30080/TCP', 0],
    ],
  );
});

test('an endpoint has a share of each decision that uses it, and those without one come last', () => {
  const external = { action: 'forward', endpoints: 'local', reason: '' } as const;
  const lanes = lanesOf(serviceReport({ nodePort: 30_080, external }), endpoints, '192.0.2.1');
  assert.deepEqual(
    lanes.endpoints.map(({ report, shares, tone }) => [report.endpoint, shares, tone]),
    [
      ['10.244.0.5:8080', [0.5, 1], 'fine'],
      ['10.244.1.6:8080', [0.5, 0], 'fine'],
      ['10.244.0.9:8080', [0, 0], 'idle'],
    ],
  );
  const { right } = geometryOf(lanes);
  assert.deepEqual(
    right.map(({ endpoint: e, width }) => [e, width]),
    [
      [0, 21],
      [1, 21],
      [0, 43],
    ],
  );
});

test('a band is as wide as the share that the proxy reports, which a hash makes unequal', () => {
  const hashed = [endpoint('10.244.0.5', { cluster: 0.75 }), endpoint('10.244.1.6', { cluster: 0.25 })];
  const { right } = geometryOf(lanesOf(serviceReport({ balance: 'hash' }), hashed, '192.0.2.1'));
  assert.deepEqual(
    right.map(({ width }) => width),
    [32, 10],
  );
});

test('an address that another Service owns leads to no decision', () => {
  const lost = [{ frontend: 'external IP 198.51.100.1:80/TCP', owner: 'shop/cart:http/TCP' }];
  const port = serviceReport({ externalIPs: ['198.51.100.1'], lost });
  const { frontends } = lanesOf({ ...port, external: port.internal }, endpoints, '192.0.2.1');
  assert.deepEqual(
    frontends.map(({ decision, note }) => [decision, note]),
    [
      [0, ''],
      [-1, 'belongs to shop/cart:http/TCP'],
    ],
  );
});

test('a decision that refuses has no band to an endpoint', () => {
  const lanes = lanesOf(
    serviceReport({ internal: { action: 'reject', reason: '' } }),
    endpoints,
    '192.0.2.1',
  );
  const { left, right } = geometryOf(lanes);
  assert.deepEqual([left.map(({ tone }) => tone), right], [['warning'], []]);
});
