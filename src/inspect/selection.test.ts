import assert from 'node:assert/strict';
import { test } from 'node:test';
import { planOf, plansByKey } from '../../test/cluster/plans.ts';
import { FakeClock } from '../../test/fake-clock.ts';
import { inspectedFamily, testInspector } from '../../test/inspected-proxy.ts';
import type { Selector } from './selection.ts';

const web = planOf(
  {
    clusterIP: '10.96.0.1',
    nodePort: 30_080,
    externalIPs: ['203.0.113.7'],
    loadBalancerVIPs: ['198.51.100.7'],
  },
  [{ ip: '10.244.1.21' }, { ip: '10.244.2.21' }],
);
const api = planOf({ clusterIP: '10.96.0.2', namespace: 'shop', name: 'api', portName: 'grpc' }, [
  { ip: '10.244.2.21' },
]);
const inspector = testInspector({ plans: plansByKey(web, api) }, new FakeClock());

const WEB = 'default/web/TCP';
const API = 'shop/api:grpc/TCP';

const cases: [selector: Selector, services: readonly string[]][] = [
  [{}, [WEB, API]],
  [{ name: '' }, [WEB, API]],
  [{ namespace: 'shop' }, [API]],
  [{ namespace: 'nowhere' }, []],
  [{ name: 'web' }, [WEB]],
  [{ name: 'web', namespace: 'default' }, [WEB]],
  [{ name: 'web', namespace: 'shop' }, []],
  [{ name: 'default/web', namespace: 'shop' }, []],
  [{ name: 'default/web' }, [WEB]],
  [{ name: 'default/web:80' }, [WEB]],
  [{ name: 'default/web/TCP' }, [WEB]],
  [{ name: 'shop/api:grpc' }, [API]],
  [{ name: 'api:grpc' }, [API]],
  [{ name: 'api:80/TCP' }, [API]],
  [{ name: 'api:80/UDP' }, []],
  [{ name: 'shop/api:grpc/TCP' }, [API]],
  [{ name: 'shop/web' }, []],
  // By address: cluster IP, external IP, load balancer IP, node port, endpoint.
  [{ name: '10.96.0.2' }, [API]],
  [{ name: '10.96.0.1', namespace: 'shop' }, []],
  [{ name: '10.96.0.1:80' }, [WEB]],
  [{ name: '10.96.0.1:81' }, []],
  [{ name: '10.96.0.1:80/tcp' }, [WEB]],
  [{ name: '10.96.0.1:80/UDP' }, []],
  [{ name: '203.0.113.7:80' }, [WEB]],
  [{ name: '198.51.100.7' }, [WEB]],
  [{ name: '192.0.2.5:30080' }, [WEB]],
  [{ name: '127.0.0.1:30080' }, [WEB]],
  [{ name: '192.0.2.5' }, []],
  [{ name: '192.0.2.6:30080' }, []],
  [{ name: '10.244.2.21' }, [WEB, API]],
  [{ name: '10.244.1.21:8080' }, [WEB]],
  [{ name: '10.244.1.21:8081' }, []],
  [{ name: '[fd00::1]:80' }, []],
];

for (const [selector, wanted] of cases) {
  test(`${JSON.stringify(selector)} selects ${wanted.join(' and ') || 'no service port'}`, async () => {
    const found = [...(await inspector.services(selector))].map(({ service }) => service);
    assert.deepEqual(found, wanted);
  });
}

test('endpoints by the address of a Service are all of that Service, by their own address only those', async () => {
  const ids = async (name: string) =>
    [...(await inspector.endpoints({ name }))].map(({ service, endpoint }) => `${service} ${endpoint}`);
  assert.deepEqual(await ids('10.96.0.1'), [`${WEB} 10.244.1.21:8080`, `${WEB} 10.244.2.21:8080`]);
  assert.deepEqual(await ids('10.244.2.21'), [`${WEB} 10.244.2.21:8080`, `${API} 10.244.2.21:8080`]);
});

test('a Service that a listener serves at another address is found by that address', async () => {
  const place = { key: WEB, frontend: '10.96.0.1:80/TCP', note: '' };
  const places = [
    { ...place, address: '127.0.0.1:8080' },
    { ...place, address: '0.0.0.0:30081' },
    { ...place, address: '' },
  ];
  const clock = new FakeClock();
  const served = inspectedFamily({ plans: plansByKey(web, api) }, clock);
  const rules = { ...served.rules, direct: () => ({ reason: 'not root', places }) };
  const direct = testInspector({}, clock, { families: [{ ...served, rules }] });
  const found = async (name: string) => [...(await direct.services({ name }))].map(({ service }) => service);
  assert.deepEqual(await found('127.0.0.1:8080'), [WEB]);
  assert.deepEqual(await found('127.0.0.1:8080/UDP'), []);
  assert.deepEqual(await found('192.0.2.5:30081'), [WEB]);
  assert.deepEqual(await found('192.0.2.5:8080'), []);
  assert.deepEqual(await found('127.0.0.1'), []);
});
