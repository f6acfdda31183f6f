import assert from 'node:assert/strict';
import { test } from 'node:test';
import { connectionsIn, limitsFor, raiseOpenFileLimit } from './open-files.ts';

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

test('both limits on open files are raised where that is allowed', () => {
  const limits = fakeLimits(1024, 4096, true);
  assert.deepEqual(raiseOpenFileLimit(limits), { limit: 64_000 });
  assert.deepEqual(limits.state, { soft: 64_000, hard: 64_000 });
});

test('a limit on open files is never lowered', () => {
  const limits = fakeLimits(1024, 1_048_576, true);
  assert.deepEqual(raiseOpenFileLimit(limits), { limit: 64_000 });
  assert.equal(limits.state.hard, 1_048_576);
  const high = fakeLimits(100_000, 1_048_576, true);
  assert.deepEqual(raiseOpenFileLimit(high), { limit: 100_000 });
  assert.equal(high.state.soft, 100_000);
});

test('the limit is raised as far as allowed, and the problem is returned', () => {
  const limits = fakeLimits(1024, 4096, false);
  const { limit, problem } = raiseOpenFileLimit(limits);
  assert.equal(limit, 4096);
  assert.match(problem ?? '', /64000: EPERM/);
});

test('a connection takes two files, and one service cannot have all connections', () => {
  const { files, perService } = limitsFor(64_000);
  assert.deepEqual([files, connectionsIn(files), perService], [63_000, 31_500, 23_625]);
  const small = limitsFor(100);
  assert.ok(small.files < 100 && small.perService < connectionsIn(small.files));
});

test('listeners leave files for connections and for the rest of the program', () => {
  for (const openFiles of [256, 1_024, 4_096, 64_000]) {
    const { files, listening, spare } = limitsFor(openFiles);
    assert.ok(listening < files && files + spare < openFiles);
  }
});

test('the number of connections is limited even if open files are practically unlimited', () => {
  assert.deepEqual(limitsFor(1_073_741_816), limitsFor(1_048_576));
  assert.equal(connectionsIn(limitsFor(1_048_576).files), 523_788);
});
