import assert from 'node:assert/strict';
import { test } from 'node:test';
import { wordBytes } from './bytes.ts';
import { HandlerNumbers, handlerElements } from './handler-numbers.ts';

const elements = (...entries: [number, string][]) =>
  new Map(entries.map(([number, value]) => [wordBytes(number), value]));

test('every chain has a number of its own, and keeps it', () => {
  const numbers = new HandlerNumbers();
  assert.equal(numbers.of('cluster-pick-1'), 1);
  assert.equal(numbers.of('cluster-pick-2'), 2);
  assert.equal(numbers.of('cluster-pick-1'), 1);
});

test('numbers in the kernel are kept and not given out to others', () => {
  const numbers = new HandlerNumbers(
    elements([2, 'goto cluster-pick-7\n'], [1, 'goto cluster-pick-3\ncomment'], [3, 'drop\n']),
  );
  assert.equal(numbers.of('cluster-pick-7'), 2);
  assert.equal(numbers.of('cluster-pick-3'), 1);
  assert.equal(numbers.of('cluster-pick-4'), 4);
});

test('what makes no sense in the kernel counts as not there', () => {
  const numbers = new HandlerNumbers(
    elements(
      [0, 'goto cluster-pick-1\n'],
      [8, 'goto cluster-pick-2\n'],
      [9, 'goto cluster-pick-2\n'],
      [0xffffffff, 'goto their-chain\n'],
    ),
  );
  assert.equal(numbers.of('cluster-pick-1'), 1);
  assert.equal(numbers.of('cluster-pick-2'), 8);
});

test('a chain that went away returns under another number', () => {
  const numbers = new HandlerNumbers(elements([1, 'goto cluster-pick-1\n']));
  numbers.retire('cluster-pick-1');
  assert.equal(numbers.of('cluster-pick-2'), 2);
  assert.equal(numbers.of('cluster-pick-1'), 3);
});

test('only chains that frontends name are in the map', () => {
  const found: string[] = [];
  const chains = ['sources-24', 'pick-2', 'split-pick-2', 'external-nodeport-1'];
  handlerElements(chains, new HandlerNumbers(), (set, _, value) => found.push(`${set} ${value.trim()}`));
  assert.deepEqual(found, ['handlers goto split-pick-2', 'handlers goto external-nodeport-1']);
});
