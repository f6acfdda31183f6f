import assert from 'node:assert/strict';
import { test } from 'node:test';
import { slice } from '../../test/cluster/objects.ts';
import { LogRecorder } from '../../test/log-recorder.ts';
import { families } from '../model/ip.ts';
import type { EndpointSliceObject } from '../model/objects.ts';
import { type Logger, silentLogger } from '../obs/log.ts';
import { type FamilySink, Router } from './router.ts';
import { SetAside } from './set-aside.ts';

function harness(logger: Logger = silentLogger) {
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
  return { router: new Router(sinks, setAside, logger), updates };
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

test('a slice of domain names is logged once, not at every update and not at its removal', () => {
  const log = new LogRecorder();
  const { router } = harness(log);
  const versions = ['1', '2', '3'].map((resourceVersion) =>
    slice('s', '', { addressType: 'FQDN', resourceVersion }),
  );
  let previous: EndpointSliceObject | undefined;
  for (const version of versions) {
    router.upsert('endpointSlices', version, previous);
    previous = version;
  }
  router.remove('endpointSlices', slice('s', '', { addressType: 'FQDN' }));
  assert.deepEqual(
    log.lines.map(({ message }) => message),
    ['EndpointSlice ignored'],
  );
});
