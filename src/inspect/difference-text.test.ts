import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { DifferenceReport } from './api.ts';
import { differenceLines } from './difference-text.ts';

function difference(parts: Partial<DifferenceReport>): DifferenceReport {
  const base = {
    family: 'IPv4',
    service: null,
    kind: 'element',
    object: 'x',
    wanted: 'w',
    found: 'f',
  } as const;
  return { ...base, ...parts };
}

test('shared objects come first, then services by name, each with missing, surplus and differing objects', () => {
  const lines = differenceLines([
    difference({
      service: 'shop/web/TCP',
      object: 'service-ips 10.96.0.1',
      found: undefined,
      wanted: 'goto web',
    }),
    difference({ service: 'shop/api/TCP', wanted: undefined, found: 'goto api' }),
    difference({ kind: 'chain', object: 'nat KUBE-SERVICES', found: undefined, wanted: '' }),
    difference({ service: 'shop/web/TCP', object: 'port 80', wanted: 'a', found: 'b' }),
  ]);
  assert.deepEqual(lines, [
    'shared by all services',
    '  + chain nat KUBE-SERVICES',
    '',
    'shop/api/TCP',
    '  - element x: goto api',
    '',
    'shop/web/TCP',
    '  + element service-ips 10.96.0.1: goto web',
    '  ~ element port 80',
    '      is:     b',
    '      should: a',
  ]);
});

test('a difference of several lines stays under the name of its object', () => {
  const chain = { kind: 'chain', object: 'nat', wanted: 'hook\nrule 1\nrule 2' };
  assert.deepEqual(differenceLines([difference({ ...chain, found: undefined })]).slice(1), [
    '  + chain nat',
    '      hook',
    '      rule 1',
    '      rule 2',
  ]);
  assert.deepEqual(differenceLines([difference({ ...chain, found: 'hook\nrule 2' })]).slice(1), [
    '  ~ chain nat',
    '      is:     hook',
    '              rule 2',
    '      should: hook',
    '              rule 1',
    '              rule 2',
  ]);
});

test('a detail that repeats the name of the object is left out', () => {
  const rule = difference({ kind: 'rule', object: '-A X -j Y', wanted: '-A X -j Y', found: undefined });
  assert.deepEqual(differenceLines([rule]).at(-1), '  + rule -A X -j Y');
  const set = difference({ kind: 'set', object: 'frontends', wanted: 'present', found: undefined });
  assert.deepEqual(differenceLines([set]).at(-1), '  + set frontends');
});
