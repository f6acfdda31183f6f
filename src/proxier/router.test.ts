import assert from 'node:assert/strict';
import { test } from 'node:test';
import { slice } from '../../test/cluster/objects.ts';
import { families } from '../model/ip.ts';
import { silentLogger } from '../obs/log.ts';
import { type FamilySink, Router } from './router.ts';
import { SetAside } from './set-aside.ts';

function harness() {
  const updates: string[] = [];
  const sinks = families.map((family): FamilySink => {
    return {
      family,
      updateService: () => {},
      updateSlice: ({ name }, removed) => void updates.push(`${family} ${removed ? '-' : '+'}${name}`),
      setServiceCIDRs: () => {},
      synced: () => {},
    };
  });
  const setAside = new SetAside({ announce: () => {}, logger: silentLogger });
  return { router: new Router(sinks, setAside, silentLogger), updates };
}

test('slices go to the family of their address type', () => {
  const { router, updates } = harness();
  router.upsert('endpointSlices', slice('s', '1R@n1'), undefined);
  router.upsert('endpointSlices', slice('t', '1R@n1', { addressType: 'IPv6' }), undefined);
  router.upsert('endpointSlices', slice('u', '', { addressType: 'FQDN' }), undefined);
  router.remove('endpointSlices', slice('s', '1R@n1'));
  assert.deepEqual(updates, ['IPv4 +s', 'IPv6 +t', 'IPv4 -s']);
});

test('a slice with a new address type moves to the other family', () => {
  const { router, updates } = harness();
  const before = slice('s', '1R@n1');
  const after = slice('s', '1R@n1', { addressType: 'IPv6' });
  router.upsert('endpointSlices', before, undefined);
  router.upsert('endpointSlices', after, before);
  router.upsert('endpointSlices', slice('s', '', { addressType: 'FQDN' }), after);
  assert.deepEqual(updates, ['IPv4 +s', 'IPv4 -s', 'IPv6 +s', 'IPv6 -s']);
});
