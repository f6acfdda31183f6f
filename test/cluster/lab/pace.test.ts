import assert from 'node:assert/strict';
import { test } from 'node:test';
import { paceOf } from './pace.ts';

test('waits are as written unless the environment says how many times longer', () => {
  assert.equal(paceOf(undefined), 1);
  assert.equal(paceOf('3'), 3);
});

test('a pace that is no whole number from 1 on is named', () => {
  for (const text of ['', '0', '-1', '1.5', 'fast']) {
    assert.throws(() => paceOf(text), { message: new RegExp(`KPT_PACE .*"${text}"`) });
  }
});
