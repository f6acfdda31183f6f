import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isNodeEligible, zoneOf } from './node-eligibility.ts';
import type { NodeObject } from './objects.ts';

const node = (over: Partial<NodeObject> = {}): NodeObject => ({
  name: 'n1',
  resourceVersion: '1',
  labels: {},
  addresses: [],
  podCIDRs: [],
  taintKeys: [],
  deleting: false,
  ...over,
});

test('a node is eligible unless it is unknown, being deleted or tainted by the autoscaler', () => {
  assert.equal(isNodeEligible(undefined), false, 'unknown');
  assert.equal(isNodeEligible(node()), true, 'plain');
  assert.equal(isNodeEligible(node({ deleting: true })), false, 'deletionTimestamp set');
  assert.equal(isNodeEligible(node({ taintKeys: ['node.kubernetes.io/not-ready'] })), true, 'other taint');
  assert.equal(
    isNodeEligible(node({ taintKeys: ['a', 'ToBeDeletedByClusterAutoscaler'] })),
    false,
    'autoscaler',
  );
});

test('an absent zone label differs from an empty one', () => {
  assert.equal(zoneOf(undefined), undefined);
  assert.equal(zoneOf(node()), undefined);
  assert.equal(zoneOf(node({ labels: { 'topology.kubernetes.io/zone': '' } })), '');
  assert.equal(zoneOf(node({ labels: { 'topology.kubernetes.io/zone': 'za' } })), 'za');
});
