import assert from 'node:assert/strict';
import { test } from 'node:test';
import { compareVersions } from './resource-version.ts';

test('versions compare as numbers of any length', () => {
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

test('anything else has no order', () => {
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
