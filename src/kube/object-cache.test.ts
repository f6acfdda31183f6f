import assert from 'node:assert/strict';
import { test } from 'node:test';
import { compareVersions, ObjectCache } from './object-cache.ts';

const at = (resourceVersion: string) => ({ resourceVersion });

test('newer versions replace older ones, older and equal ones do not', () => {
  const cache = new ObjectCache<{ resourceVersion: string }>();
  const first = at('9');
  assert.deepEqual(cache.put('a', first), { stored: true, previous: undefined });
  assert.deepEqual(cache.put('a', at('10')), { stored: true, previous: first });
  for (const version of ['10', '9', '2']) assert.deepEqual(cache.put('a', at(version)), { stored: false });
});

test('versions without an order replace each other unless they are equal', () => {
  const cache = new ObjectCache<{ resourceVersion: string }>();
  cache.put('a', at('zz'));
  assert.equal(cache.put('a', at('zz')).stored, false);
  assert.equal(cache.put('a', at('aa')).stored, true);
  assert.equal(cache.put('a', at('5')).stored, true);
});

test('a late deletion is ignored, a late addition does not undo a deletion', () => {
  const cache = new ObjectCache<{ resourceVersion: string }>();
  cache.put('a', at('10'));
  assert.equal(cache.delete('a', '9'), undefined);
  assert.deepEqual(cache.delete('a', '11'), at('10'));
  assert.equal(cache.delete('a', '12'), undefined);
  assert.equal(cache.put('a', at('10')).stored, false);
  assert.equal(cache.put('a', at('12')).stored, true);
});

test('a listing removes objects that it does not contain and rejects older versions of them', () => {
  const cache = new ObjectCache<{ resourceVersion: string }>();
  for (const key of ['a', 'b', 'c']) cache.put(key, at('5'));
  cache.beginListing();
  cache.put('a', at('5'));
  cache.keep('c');
  assert.deepEqual(cache.endListing('20'), [at('5')]);
  assert.equal(cache.size, 2);
  assert.equal(cache.put('b', at('19')).stored, false);
  assert.equal(cache.put('b', at('21')).stored, true);
});

test('a listing may bring older versions, but only once per object', () => {
  const cache = new ObjectCache<{ resourceVersion: string }>();
  cache.put('a', at('100'));
  cache.beginListing();
  assert.equal(cache.put('a', at('50')).stored, true, 'the server was restored from a backup');
  assert.equal(cache.put('a', at('40')).stored, false);
  assert.equal(cache.endListing('60').length, 0);
  assert.equal(cache.put('a', at('61')).stored, true);
});

test('deletions are remembered up to a bound', () => {
  const cache = new ObjectCache<{ resourceVersion: string }>();
  for (let i = 0; i < 10_000; i++) {
    cache.put(`o-${i}`, at('5'));
    cache.delete(`o-${i}`, '6');
  }
  assert.equal(cache.put('o-9999', at('5')).stored, false);
  assert.equal(cache.put('o-0', at('5')).stored, true, 'long forgotten');
});

test('resource versions compare as numbers of any length', () => {
  const ordered = [
    '1',
    '2',
    '10',
    '99',
    '100',
    '9007199254740993',
    '9007199254740994',
    '123456789012345678901',
  ];
  for (const [i, a] of ordered.entries()) {
    for (const [j, b] of ordered.entries())
      assert.equal(Math.sign(compareVersions(a, b) ?? Number.NaN), Math.sign(i - j));
  }
});

test('versions that are not decimal numbers have no order', () => {
  for (const [a, b] of [
    ['', '1'],
    ['1', 'x'],
    ['01', '2'],
    ['1.5', '2'],
    ['-1', '1'],
  ] as const) {
    assert.equal(compareVersions(a, b), undefined);
  }
  assert.equal(compareVersions('x', 'x'), 0);
});
