import assert from 'node:assert/strict';
import { test } from 'node:test';
import { limitsFor, raiseOpenFileLimit } from './open-files.ts';

function fakeLimits(soft: number, hard: number, mayRaise: boolean) {
  const state = { soft, hard };
  return {
    state,
    openFileLimit: () => [state.soft, state.hard] as const,
    setOpenFileLimit(newSoft: number, newHard: number) {
      if (newHard > state.hard && !mayRaise) return -1;
      Object.assign(state, { soft: newSoft, hard: newHard });
      return 0;
    },
  };
}

test('raises both limits where it may', () => {
  const limits = fakeLimits(1024, 4096, true);
  assert.deepEqual(raiseOpenFileLimit(limits), { limit: 64_000 });
  assert.deepEqual(limits.state, { soft: 64_000, hard: 64_000 });
});

test('never lowers one', () => {
  const limits = fakeLimits(1024, 1_048_576, true);
  assert.deepEqual(raiseOpenFileLimit(limits), { limit: 64_000 });
  assert.equal(limits.state.hard, 1_048_576);
  const high = fakeLimits(100_000, 1_048_576, true);
  assert.deepEqual(raiseOpenFileLimit(high), { limit: 100_000 });
  assert.equal(high.state.soft, 100_000);
});

test('goes as far as it may, and says why no further', () => {
  const limits = fakeLimits(1024, 4096, false);
  const { limit, problem } = raiseOpenFileLimit(limits);
  assert.equal(limit, 4096);
  assert.match(problem ?? '', /64000: EPERM/);
});

test('connections take two files each, and one service cannot have them all', () => {
  assert.deepEqual(limitsFor(64_000), { total: 31_500, perService: 23_625 });
  const small = limitsFor(100);
  assert.ok(small.total * 2 < 100 && small.perService < small.total);
});

test('where files have no limit worth the name, connections have one', () => {
  assert.deepEqual(limitsFor(1_073_741_816), limitsFor(1_048_576));
  assert.deepEqual(limitsFor(1_048_576), { total: 523_788, perService: 392_841 });
});
