import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Fate, Target } from '../backends/inspection.ts';
import { fateDifferences } from './compare-fates.ts';

const a: Target = { endpoint: '10.244.1.21:8080', probability: 0.5, masquerade: false };
const b: Target = { endpoint: '10.244.2.21:8080', probability: 0.5, masquerade: false };

function to(targets: readonly Target[], affinitySeconds = 0): Fate {
  return { action: 'forward', targets, affinitySeconds };
}

test('equal fates have no differences', () => {
  assert.deepEqual(fateDifferences(to([a, b]), to([a, b])), []);
  assert.deepEqual(fateDifferences({ action: 'drop' }, { action: 'drop' }), []);
});

test('fates with different actions differ', () => {
  assert.deepEqual(fateDifferences(to([a]), { action: 'pass' }), [
    'The plan is to forward the packet, but the kernel would ignore it.',
  ]);
  assert.equal(fateDifferences({ action: 'drop' }, { action: 'reject' }).length, 1);
});

test('fates differ by a missing endpoint, a surplus endpoint and a wrong probability', () => {
  assert.deepEqual(fateDifferences(to([a, b]), to([{ ...a, probability: 1 }])), [
    '10.244.1.21:8080 should get 50 % of new connections and gets 100 %.',
    '10.244.2.21:8080 should get 50 % of new connections and gets 0 %.',
  ]);
  assert.deepEqual(fateDifferences(to([{ ...a, probability: 1 }]), to([a, b])), [
    '10.244.2.21:8080 gets connections and should not.',
    '10.244.1.21:8080 should get 100 % of new connections and gets 50 %.',
  ]);
});

test('probabilities that the kernel rounded do not differ', () => {
  assert.deepEqual(fateDifferences(to([a, b]), to([{ ...a, probability: 0.500000001 }, b])), []);
});

test('fates differ by the source address that an endpoint sees', () => {
  assert.deepEqual(fateDifferences(to([a, b]), to([{ ...a, masquerade: true }, b])), [
    '10.244.1.21:8080 should not see an address of the node as the source, and does.',
  ]);
  assert.deepEqual(fateDifferences(to([{ ...a, masquerade: true }, b]), to([a, b])), [
    '10.244.1.21:8080 should see an address of the node as the source, and does not.',
  ]);
});

test('an endpoint that is missing in the kernel is a difference also with affinity', () => {
  const only = to([{ ...a, probability: 1 }], 600);
  assert.equal(fateDifferences(to([a, b], 600), only).length, 2);
});

test('a remembered client agrees with the plan when its endpoint is a planned one', () => {
  const only = { ...a, probability: 1 };
  assert.deepEqual(fateDifferences(to([a, b], 600), to([only], 600), true), []);
  const elsewhere = to([{ ...only, endpoint: '10.244.9.9:80' }], 600);
  assert.equal(fateDifferences(to([a, b], 600), elsewhere, true).length, 1);
  assert.deepEqual(fateDifferences(to([a, b], 600), to([a, b], 60)), [
    'Client affinity should last 600 s, but lasts 60 s in the kernel.',
  ]);
});
