import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fateOf } from './fate.ts';

test('the ways to one endpoint are one target', () => {
  const way = { action: 'forward', masquerade: false } as const;
  const { fate, notes } = fateOf(
    [
      { ...way, endpoint: '10.0.0.2:80', probability: 0.5 },
      { ...way, endpoint: '10.0.0.1:80', probability: 0.25 },
      { ...way, endpoint: '10.0.0.2:80', probability: 0.25 },
      { action: 'drop', probability: 1e-12 },
    ],
    60,
  );
  const targets = [
    { endpoint: '10.0.0.1:80', masquerade: false, probability: 0.25 },
    { endpoint: '10.0.0.2:80', masquerade: false, probability: 0.75 },
  ];
  assert.deepEqual(fate, { action: 'forward', targets, affinitySeconds: 60 });
  assert.deepEqual(notes, []);
});

test('rules that lead to several fates say so', () => {
  const forward = { action: 'forward', endpoint: '10.0.0.1:80', masquerade: true } as const;
  const { fate, notes } = fateOf(
    [
      { ...forward, probability: 0.25 },
      { action: 'pass', probability: 0.75 },
    ],
    0,
  );
  assert.equal(fate.action, 'forward');
  assert.deepEqual(notes, ['# with probability 0.7500: pass']);
});

test('nothing at all passes', () => {
  assert.deepEqual(fateOf([], 0), { fate: { action: 'pass' }, notes: [] });
});
