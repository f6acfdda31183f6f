import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { EndpointParts } from '../../test/cluster/objects.ts';
import { planOf } from '../../test/cluster/plans.ts';
import { distinctFrontends, type Frontend } from './frontend.ts';

const here: EndpointParts = { ip: '10.244.1.21', port: 8080, local: true };
const elsewhere: EndpointParts = { ip: '10.244.2.21', port: 8080 };

const everything = {
  clusterIP: '10.96.0.1',
  externalIPs: ['198.51.100.7'],
  loadBalancerVIPs: ['198.51.100.8'],
  nodePort: 30_080,
};

function fates(frontends: readonly Frontend[]): Record<string, unknown[]> {
  return Object.fromEntries(
    frontends.map(({ name, endpoints, nearEndpoints, outside }) => [
      name,
      [endpoints, nearEndpoints, outside.action],
    ]),
  );
}

test('policy Cluster: every address leads to all endpoints', () => {
  const to = ['cluster', undefined, 'forward'];
  assert.deepEqual(fates(distinctFrontends(planOf(everything, [here, elsewhere]))), {
    '10.96.0.1:80/TCP': to,
    '198.51.100.7:80/TCP': to,
    '198.51.100.8:80/TCP': to,
    ':30080/TCP': to,
  });
});

test('policy Local: clients elsewhere reach endpoints on this node, clients on this node reach all', () => {
  const plan = planOf({ ...everything, externalPolicyLocal: true }, [here, elsewhere]);
  assert.deepEqual(fates(distinctFrontends(plan))[':30080/TCP'], ['local', 'cluster', 'forward']);
  const none = planOf({ ...everything, externalPolicyLocal: true }, [elsewhere]);
  assert.deepEqual(fates(distinctFrontends(none))[':30080/TCP'], [undefined, 'cluster', 'drop']);
});

test('internal policy Local drops without an endpoint on this node; without any endpoint all is rejected', () => {
  const dropped = distinctFrontends(planOf({ ...everything, internalPolicyLocal: true }, [elsewhere]));
  assert.deepEqual(fates(dropped)['10.96.0.1:80/TCP'], [undefined, undefined, 'drop']);
  const rejected = Object.values(fates(distinctFrontends(planOf(everything, []))));
  assert.deepEqual(new Set(rejected.map((fate) => fate[2])), new Set(['reject']));
});

test('source ranges apply only to load balancer IPs, also to one that is an external IP as well', () => {
  const parts = {
    ...everything,
    sourceRanges: ['203.0.113.0/24'],
    externalIPs: ['198.51.100.8', '198.51.100.9'],
  };
  const guarded = distinctFrontends(planOf(parts, [here])).filter(
    ({ sourceRanges }) => sourceRanges.length > 0,
  );
  assert.deepEqual(
    guarded.map(({ name }) => name),
    ['198.51.100.8:80/TCP'],
  );
});
