import assert from 'node:assert/strict';
import { test } from 'node:test';
import { differingChains } from './chain-diff.ts';

const cases = [
  { name: 'equal lists', before: ['-A A x', '-A B y'], after: ['-A A x', '-A B y'], differing: [] },
  { name: 'another rule', before: ['-A A x', '-A B y'], after: ['-A A x', '-A B z'], differing: ['B'] },
  { name: 'a rule more', before: ['-A A x'], after: ['-A A x', '-A A x'], differing: ['A'] },
  {
    name: 'another order in one chain',
    before: ['-A A x', '-A A y'],
    after: ['-A A y', '-A A x'],
    differing: ['A'],
  },
  {
    name: 'another order of chains',
    before: ['-A A x', '-A B y'],
    after: ['-A B y', '-A A x'],
    differing: [],
  },
  {
    name: 'a chain gone and one new',
    before: ['-A A x', '-A C z'],
    after: ['-A B x', '-A C z'],
    differing: ['A', 'B'],
  },
  { name: 'names that begin alike', before: ['-A AB x'], after: ['-A AB x', '-A A x'], differing: ['A'] },
];

for (const { name, before, after, differing } of cases) {
  test(name, () => {
    assert.deepEqual([...differingChains(before, after)].sort(), differing);
  });
}
