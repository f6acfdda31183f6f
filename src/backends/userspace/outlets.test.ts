import assert from 'node:assert/strict';
import { test } from 'node:test';
import { planOf } from '../../../test/cluster/plans.ts';
import type { LocalDetector } from '../../model/local-detector.ts';
import { servableFrontends } from './frontends.ts';
import {
  keptSources,
  listOf,
  type Outlet,
  type Outlets,
  outletsOf,
  outletsOfAll,
  type SourceSettings,
} from './outlets.ts';

const settings: SourceSettings = {
  family: 'IPv4',
  keepsSource: true,
  masqueradeAll: false,
  localDetector: { kind: 'cidr', cidr: '10.244.1.0/24' },
};
const bridge: LocalDetector = { kind: 'interface', name: 'cni0' };
const here = { ip: '10.244.1.21', port: 8080, local: true };
const elsewhere = { ip: '10.244.2.21', port: 8080 };
const clusterIP = '10.96.0.1';

type Parts = Omit<Parameters<typeof planOf>[0], 'clusterIP'>;

function frontends(parts: Parts) {
  return servableFrontends(planOf({ clusterIP, nodePort: 30_080, ...parts }, [here, elsewhere]));
}

/** Outlets by kind of frontend, of a service port with a cluster IP and a node port. */
function outlets(parts: Parts = {}, changed: Partial<SourceSettings> = {}): Record<string, Outlets> {
  return Object.fromEntries(
    frontends(parts).map((frontend) => [frontend.kind, outletsOf(frontend, { ...settings, ...changed })]),
  );
}

function all(parts: Parts = {}, changed: Partial<SourceSettings> = {}): Outlet[] {
  return [...outletsOfAll(frontends(parts), { ...settings, ...changed })].sort();
}

const only = (outside: Outlet): Outlets => ({ outside, near: undefined, pods: undefined });

test('a proxy port of TCP serves the cluster IP, where pods keep their address, and the node port, where nobody does', () => {
  const shared = only('cluster, source kept for pods at the cluster IP');
  assert.deepEqual(outlets(), { 'cluster IP': shared, 'node port': shared });
});

test('datagrams do not tell where they were sent to, so the cluster IP has a proxy port of its own', () => {
  assert.deepEqual(outlets({ protocol: 'UDP' }), {
    'cluster IP': only('cluster, source kept for pods'),
    'node port': only('cluster'),
  });
});

test('a service port with a cluster IP alone has one proxy port', () => {
  assert.deepEqual(all({ protocol: 'UDP', nodePort: 0 }), ['cluster, source kept for pods']);
  assert.deepEqual(all({ nodePort: 0 }), all());
});

test('where only the interface tells pods from others, the rules do that, and pods have a proxy port of their own', () => {
  assert.deepEqual(outlets({}, { localDetector: bridge }), {
    'cluster IP': { outside: 'cluster', near: undefined, pods: 'cluster, source kept for all' },
    'node port': only('cluster'),
  });
  assert.deepEqual(outlets({ externalPolicyLocal: true }, { localDetector: bridge })['node port'], {
    outside: 'local, source kept for all',
    near: 'cluster',
    pods: 'cluster, source kept for all',
  });
});

test('with external policy Local only this node itself is masqueraded, and there are two proxy ports', () => {
  assert.deepEqual(outlets({ externalPolicyLocal: true })['node port'], {
    outside: 'local, source kept for all',
    near: 'cluster, source kept for pods',
    pods: undefined,
  });
  assert.equal(all({ externalPolicyLocal: true }).length, 2);
});

test('masqueradeAll is for cluster IPs only', () => {
  const found = outlets({ externalPolicyLocal: true }, { masqueradeAll: true });
  assert.deepEqual(found['cluster IP'], only('cluster'));
  assert.equal(found['node port']?.outside, 'local, source kept for all');
  assert.deepEqual(all({}, { masqueradeAll: true, localDetector: bridge }), ['cluster']);
});

test('where pods cannot be told from others, nobody is masqueraded at a cluster IP', () => {
  const localDetector = { kind: 'none' } as const;
  assert.deepEqual(all({ protocol: 'UDP', nodePort: 0 }, { localDetector }), [
    'cluster, source kept for all',
  ]);
  assert.deepEqual(outlets({ externalPolicyLocal: true }, { localDetector }), {
    'cluster IP': only('cluster, source kept for all at the cluster IP'),
    'node port': {
      outside: 'local, source kept for all',
      near: 'cluster, source kept for all at the cluster IP',
      pods: undefined,
    },
  });
});

test('where addresses cannot be kept, everybody is masqueraded', () => {
  const found = outlets({ externalPolicyLocal: true }, { keepsSource: false });
  assert.deepEqual(found, {
    'cluster IP': only('cluster'),
    'node port': { outside: 'local', near: 'cluster', pods: undefined },
  });
});

test('an outlet names its list and the clients whose address is kept', () => {
  const kept = (outlet: Outlet) => [listOf(outlet), keptSources(outlet, clusterIP, settings)];
  assert.deepEqual(kept('cluster'), ['cluster', undefined]);
  assert.deepEqual(kept('cluster, source kept for pods'), ['cluster', { of: '10.244.1.0/24' }]);
  assert.deepEqual(kept('local, source kept for all'), ['local', { of: '0.0.0.0/0' }]);
  assert.deepEqual(kept('cluster, source kept for all at the cluster IP'), [
    'cluster',
    { of: '0.0.0.0/0', at: clusterIP },
  ]);
});
