import assert from 'node:assert/strict';
import { test } from 'node:test';
import { planOf } from '../../../../test/cluster/plans.ts';
import { servableFrontends } from '../frontends.ts';
import { type ElementSettings, elementsOf, meaningOf, type PortalElement, placeOf } from './elements.ts';

const endpoint = { ip: '10.244.1.21', port: 8080 };
const proxyPorts = new Map([['cluster', 40_000] as const]);

const settings: ElementSettings = {
  family: 'IPv4',
  nodeIP: '192.0.2.5',
  localDetector: { kind: 'cidr', cidr: '10.244.1.0/24' },
  keepsSource: false,
  masqueradeAll: false,
};

function elements(parts: Parameters<typeof planOf>[0]): PortalElement[] {
  const plan = planOf(parts, [endpoint]);
  return elementsOf({ plan, frontends: servableFrontends(plan), proxyPorts }, settings);
}

const bytes = (...values: number[]): Uint8Array => Uint8Array.of(...values);

test('a cluster IP leads to the proxy port, and only that', () => {
  const key = bytes(10, 96, 0, 1, 6, 0, 0, 0, 0, 80, 0, 0);
  assert.deepEqual(elements({ clusterIP: '10.96.0.1' }), [
    { set: 'portals', element: { key, data: bytes(0x9c, 0x40), comment: 'default/web' } },
    { set: 'cluster-addresses', element: { key: bytes(10, 96, 0, 1) } },
    { set: 'proxy-ports', element: { key: bytes(6, 0, 0, 0, 0x9c, 0x40, 0, 0) } },
  ]);
});

test('a node port is keyed by protocol and port alone', () => {
  const found = elements({ clusterIP: '10.96.0.1', nodePort: 30_080 }).filter(
    ({ set }) => set === 'nodeports',
  );
  assert.deepEqual(
    found.map(({ element }) => element.key),
    [bytes(6, 0, 0, 0, 0x75, 0x80, 0, 0)],
  );
});

test('source ranges are merged, and let the node use its own balancer address where the node is allowed', () => {
  const parts = { clusterIP: '10.96.0.1', loadBalancerVIPs: ['198.51.100.8'] };
  const sources = (ranges: string[]) =>
    elements({ ...parts, sourceRanges: ranges })
      .filter(({ set }) => set === 'sources')
      .map(({ element }) => [element.key.slice(12), element.keyEnd?.slice(12)]);
  assert.deepEqual(sources(['10.0.0.0/8', '10.1.0.0/16']), [[bytes(10, 0, 0, 0), bytes(10, 255, 255, 255)]]);
  assert.deepEqual(sources(['192.0.2.0/24']), [
    [bytes(192, 0, 2, 0), bytes(192, 0, 2, 255)],
    [bytes(198, 51, 100, 8), bytes(198, 51, 100, 8)],
  ]);
});

test('another proxy port is another meaning at the same place', () => {
  const plan = planOf({ clusterIP: '10.96.0.1' }, [endpoint]);
  const at = (port: number): PortalElement[] =>
    elementsOf(
      { plan, frontends: servableFrontends(plan), proxyPorts: new Map([['cluster', port] as const]) },
      settings,
    );
  const [a, b] = [at(40_000)[0], at(40_001)[0]];
  assert.ok(a && b);
  assert.equal(placeOf(a), placeOf(b));
  assert.notEqual(meaningOf(a), meaningOf(b));
});
