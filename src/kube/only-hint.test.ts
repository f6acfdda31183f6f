import assert from 'node:assert/strict';
import { test } from 'node:test';
import { onlyHint } from './only-hint.ts';

test('endpoints with the same only hint share one list', () => {
  assert.deepEqual(onlyHint('zone-a'), ['zone-a']);
  assert.equal(onlyHint('zone-a'), onlyHint('zone-a'));
});

test('any number of hints are told apart', () => {
  const names = Array.from({ length: 5_000 }, (_, i) => `node-${i}`);
  assert.deepEqual(
    names.map((name) => onlyHint(name)),
    names.map((name) => [name]),
  );
});
