import assert from 'node:assert/strict';
import { test } from 'node:test';
import { serviceReport } from '../../test/service-report.ts';
import type { DecisionReport, ServiceReport } from '../inspect/api.ts';
import { allServices } from './route.ts';
import { faultyObjects, isAddressSearch, rowOf, selectRows } from './service-row.ts';

const stateOf = (fields: Partial<ServiceReport>) => rowOf(serviceReport(fields)).state;
const forward: DecisionReport = { action: 'forward', endpoints: 'cluster', reason: '' };

test('the state of a row is the worst that holds', () => {
  const lost = [{ frontend: 'external IP 198.51.100.1:80/TCP', owner: 'shop/cart:http/TCP' }];
  assert.equal(stateOf({}), 'fine');
  assert.equal(stateOf({ endpoints: { known: 3, cluster: 2, local: 0 } }), 'partial');
  assert.equal(stateOf({ lost }), 'contested');
  assert.equal(stateOf({ lost, external: { action: 'drop', reason: '' } }), 'dropped');
  assert.equal(stateOf({ lost, internal: { action: 'reject', reason: '' } }), 'rejected');
});

test('endpoints that hints or policy Local leave out are not unused', () => {
  const endpoints = { known: 3, cluster: 1, local: 1 };
  assert.equal(stateOf({ endpoints, topology: { mode: 'PreferSameZone', reason: '' } }), 'fine');
  assert.equal(stateOf({ endpoints, internal: { ...forward, endpoints: 'local' } }), 'fine');
});

test('a Service with an invalid part and a service port that the kernel refused are not programmed', () => {
  const of = (object: string, reason: 'invalid' | 'refused') =>
    rowOf(serviceReport({}), faultyObjects([{ family: 'IPv4', reason, object, problems: [] }])).state;
  assert.equal(of('Service shop/web', 'invalid'), 'refused');
  assert.equal(of('shop/web:http/TCP', 'refused'), 'refused');
  assert.equal(of('Service shop/web-2', 'invalid'), 'fine');
});

test('a search finds names, addresses and ports, all words of it', () => {
  const rows = [
    rowOf(serviceReport({ nodePort: 30_080 })),
    rowOf(serviceReport({ name: 'cart', service: 'shop/cart:http/TCP', clusterIP: '10.96.0.11' })),
  ];
  const found = (search: string) =>
    selectRows(rows, { ...allServices, search }).map(({ report }) => report.name);
  assert.deepEqual(found('shop'), ['web', 'cart']);
  assert.deepEqual(found('10.96.0.11:80'), ['cart']);
  assert.deepEqual(found(':30080'), ['web']);
  assert.deepEqual(found('WEB tcp'), ['web']);
  assert.deepEqual(found('web cart'), []);
});

test('only an address is looked up among endpoints', () => {
  for (const text of ['10.244.0.5', '10.244.0.5:8080', 'fd00::5', '[fd00::5]:80'])
    assert.ok(isAddressSearch(text));
  for (const text of ['', 'web', ':30080', '10.96', 'cafe', 'shop/web:http'])
    assert.ok(!isAddressSearch(text), text);
});
