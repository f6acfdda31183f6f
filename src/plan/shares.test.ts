import assert from 'node:assert/strict';
import { test } from 'node:test';
import { planOf } from '../../test/cluster/plans.ts';
import { listShares, sharesOf } from './shares.ts';

const three = ['10.0.0.1:80', '10.0.0.2:80', '10.0.0.3:80'];

test('without a hash, endpoints have equal shares', () => {
  assert.deepEqual(sharesOf(three, 'default', '10.9.9.9'), [1 / 3, 1 / 3, 1 / 3]);
});

test('no endpoints have no shares, with a hash or without', () => {
  for (const balance of ['default', 'hash', 'hash-client'] as const) {
    assert.deepEqual(sharesOf([], balance, '10.9.9.9'), []);
  }
});

test('with a hash, the share of an endpoint is that of its slots, for a client with any port and for all clients', () => {
  for (const shares of [
    sharesOf(three, 'hash', '10.9.9.9'),
    sharesOf(three, 'hash'),
    sharesOf(three, 'hash-client'),
  ]) {
    assert.deepEqual(
      shares.map((share) => share * 509).toSorted((a, b) => a - b),
      [169, 170, 170],
    );
  }
});

test('with a hash of the address, one endpoint has all connections of a client', () => {
  assert.deepEqual(sharesOf(three, 'hash-client', '10.9.9.9').toSorted(), [0, 0, 1]);
});

test('each list of a plan has shares of its own', () => {
  const here = { ip: '10.244.1.21', local: true };
  const there = { ip: '10.244.2.21' };
  const plan = planOf({ clusterIP: '10.96.0.1', internalPolicyLocal: true, nodePort: 30_080 }, [here, there]);
  const shares = (list: 'cluster' | 'local') => [...listShares(plan, list, 'default')];
  assert.deepEqual(shares('cluster'), [
    ['10.244.1.21:8080', 0.5],
    ['10.244.2.21:8080', 0.5],
  ]);
  assert.deepEqual(shares('local'), [['10.244.1.21:8080', 1]]);
});
