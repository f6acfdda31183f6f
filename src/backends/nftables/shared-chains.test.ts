import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { nodePortAddresses } from '../../model/node-port-addresses.ts';
import { stableSlots } from '../../model/stable-table.ts';
import type { NftablesSettings } from './settings.ts';
import {
  type Draw,
  drawChain,
  isSharedChain,
  sharedChain,
  sharedChainNeeds,
  sourcesChain,
  splitChain,
} from './shared-chains.ts';

const settings: NftablesSettings = {
  family: 'IPv6',
  masqueradeBit: 14,
  masqueradeAll: false,
  localDetector: { kind: 'cidr', cidr: 'fd00::/64' },
  nodePortAddresses: nodePortAddresses('IPv6', []),
  nodeIP: '',
  localhostNodePorts: false,
};

const anyDraw: fc.Arbitrary<Draw> = fc.record({
  from: fc.constantFrom('pick', 'nodeport'),
  list: fc.constantFrom('cluster', 'local'),
  count: fc.integer({ min: 1, max: 5000 }),
  affinitySeconds: fc.constantFrom(0, 60, 10800),
  balance: fc.constantFrom('default', 'hash', 'hash-client'),
});

test('a name says everything: every name that is given out is understood', () => {
  const purposes = fc.constantFrom('cluster', 'external', 'never');
  fc.assert(
    fc.property(anyDraw, purposes, (draw, purpose) => {
      const name = drawChain(draw, purpose);
      assert.ok(isSharedChain(name));
      const numbers = sharedChain(name, settings)
        .rules.flat()
        .filter((expr) => expr.kind === 'numgen' || expr.kind === 'hash');
      const count = draw.balance === 'default' ? draw.count : stableSlots;
      assert.equal(Math.max(...numbers.map(({ modulus }) => modulus)), count);
    }),
  );
  fc.assert(
    fc.property(anyDraw, fc.option(anyDraw, { nil: undefined }), (all, local) => {
      const name = splitChain(all, local);
      assert.ok(isSharedChain(name));
      const { chains } = sharedChainNeeds(name, settings);
      assert.deepEqual(
        chains,
        [all, local].flatMap((draw) => (draw ? drawChain(draw, 'never') : [])),
      );
    }),
  );
});

test('chains of the fixed part and of others are not taken for shared ones', () => {
  for (const name of [
    'dispatch',
    'reject-packet',
    'nat-output',
    'pick-',
    'sources-',
    'cluster-pick',
    'my-pick-2',
  ]) {
    assert.equal(isSharedChain(name), false, name);
  }
});

test('a source is tested against the longest prefixes first and dropped at the end', () => {
  const name = sourcesChain([8, 24, 24, 128]);
  assert.equal(name, 'sources-128-24-8');
  const { rules } = sharedChain(name, settings);
  assert.deepEqual(
    rules.map((rule) => rule.find((expr) => expr.kind === 'lookup')?.set),
    ['sources-128', 'sources-24', 'sources-8', undefined],
  );
});

test('more prefix lengths than fit a name are all tested', () => {
  const name = sourcesChain(Array.from({ length: 100 }, (_, i) => i + 1));
  assert.equal(name, 'sources-all');
  assert.equal(sharedChain(name, settings).rules.length, 129);
});

test('an unknown name is an error', () => {
  assert.throws(() => sharedChain('dispatch', settings), /no shared chain is called dispatch/);
});
