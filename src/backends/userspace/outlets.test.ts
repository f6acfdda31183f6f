import assert from 'node:assert/strict';
import { test } from 'node:test';
import { planOf } from '../../../test/cluster/plans.ts';
import { servableFrontends } from './frontends.ts';
import {
  keepsSource,
  listOf,
  type Outlets,
  outletsOf,
  outletsOfAll,
  type SourceSettings,
} from './outlets.ts';

const settings: SourceSettings = {
  keepsSource: true,
  masqueradeAll: false,
  localDetector: { kind: 'cidr', cidr: '10.244.1.0/24' },
};
const here = { ip: '10.244.1.21', port: 8080, local: true };
const elsewhere = { ip: '10.244.2.21', port: 8080 };

/** Outlets by kind of frontend, of a service port with a cluster IP and a node port. */
function outlets(
  parts: Omit<Parameters<typeof planOf>[0], 'clusterIP'> = {},
  changed: Partial<SourceSettings> = {},
): Record<string, Outlets> {
  const plan = planOf({ clusterIP: '10.96.0.1', nodePort: 30_080, ...parts }, [here, elsewhere]);
  return Object.fromEntries(
    servableFrontends(plan).map((frontend) => [
      frontend.kind,
      outletsOf(frontend, { ...settings, ...changed }),
    ]),
  );
}

const fromNode = { outside: 'cluster', near: undefined, pods: undefined };

test('at a cluster IP pods keep their address and all others are masqueraded; at a node port all are', () => {
  assert.deepEqual(outlets(), {
    'cluster IP': { ...fromNode, pods: 'cluster as client' },
    'node port': fromNode,
  });
});

test('with external policy Local only this node itself is masqueraded', () => {
  assert.deepEqual(outlets({ externalPolicyLocal: true })['node port'], {
    outside: 'local as client',
    near: 'cluster',
    pods: 'cluster as client',
  });
});

test('masqueradeAll is for cluster IPs only', () => {
  const found = outlets({ externalPolicyLocal: true }, { masqueradeAll: true });
  assert.deepEqual(found['cluster IP'], fromNode);
  assert.equal(found['node port']?.outside, 'local as client');
});

test('where pods cannot be told from others, nobody is masqueraded at a cluster IP', () => {
  const found = outlets({}, { localDetector: { kind: 'none' } });
  assert.deepEqual(found['cluster IP'], { ...fromNode, outside: 'cluster as client' });
});

test('where addresses cannot be kept, everybody is masqueraded', () => {
  const found = outlets({ externalPolicyLocal: true }, { keepsSource: false });
  assert.deepEqual(found, {
    'cluster IP': fromNode,
    'node port': { outside: 'local', near: 'cluster', pods: undefined },
  });
});

test('an outlet has a list and says whether it keeps the address', () => {
  const plan = planOf({ clusterIP: '10.96.0.1', nodePort: 30_080, externalPolicyLocal: true }, [
    here,
    elsewhere,
  ]);
  const all = [...outletsOfAll(servableFrontends(plan), settings)].sort();
  assert.deepEqual(
    all.map((outlet) => [listOf(outlet), keepsSource(outlet)]),
    [
      ['cluster', false],
      ['cluster', true],
      ['local', true],
    ],
  );
});
