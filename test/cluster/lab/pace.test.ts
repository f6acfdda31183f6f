import assert from 'node:assert/strict';
import { test } from 'node:test';
import { paceOf } from './pace.ts';

test('KPT_PACE multiplies waits; without it they stay as they are', () => {
  assert.equal(paceOf(undefined), 1);
  assert.equal(paceOf('3'), 3);
});

test('a KPT_PACE that is not a whole number from 1 on is an error that names it', () => {
  for (const text of ['', '0', '-1', '1.5', 'fast']) {
    assert.throws(() => paceOf(text), { message: new RegExp(`KPT_PACE .*"${text}"`) });
  }
});
