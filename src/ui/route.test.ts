import assert from 'node:assert/strict';
import { test } from 'node:test';
import { allServices, hashOf, type Route, readRoute } from './route.ts';

const routes: readonly Route[] = [
  { view: 'services', filter: allServices },
  {
    view: 'services',
    filter: { search: '10.96.0.1 :80', namespace: 'a b', state: 'dropped', sort: 'bytes' },
  },
  { view: 'service', namespace: 'shop', name: 'web', question: { from: '', to: '' } },
  { view: 'service', namespace: 'a/b', name: 'c?#%', question: { from: 'node', to: '[fd00::1]:80/TCP' } },
  { view: 'timeline', filter: { event: '-Sync' } },
];

for (const route of routes) {
  test(`the address ${hashOf(route)} means what it was made of`, () => {
    assert.deepEqual(readRoute(hashOf(route)), route);
  });
}

test('an address that means nothing shows all Services', () => {
  for (const hash of ['', '#', '#/', '#/nothing/here', '#/service/shop', '#/%zz?%zz']) {
    assert.deepEqual(readRoute(hash), { view: 'services', filter: allServices }, hash);
  }
});
