import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Operation } from './operation.ts';
import { OwnCommits } from './own-commits.ts';

const to = (family: 'ip' | 'ip6'): Operation[] => [
  { verb: 'add', kind: 'chain', object: { table: { family, name: 'kube-proxy' }, name: 'c' } },
];

test('a generation advances over own commits to other tables, up to one to the same table', () => {
  const commits = new OwnCommits();
  commits.note(5, 6, to('ip6'));
  commits.note(6, 7, to('ip6'));
  commits.note(7, 8, to('ip'));
  assert.equal(commits.advance(5, to('ip')), 7);
  assert.equal(commits.advance(5, to('ip6')), 5);
  assert.equal(commits.advance(7, to('ip6')), 8);
  assert.equal(commits.advance(8, to('ip')), 8);
});

test('a generation does not advance over a commit during which another program committed', () => {
  const commits = new OwnCommits();
  commits.note(5, 7, to('ip6'));
  assert.equal(commits.advance(5, to('ip')), 5);
  assert.equal(commits.advance(6, to('ip')), 6);
});

test('generation numbers wrap around to one', () => {
  const commits = new OwnCommits();
  commits.note(0xffffffff, 1, to('ip6'));
  assert.equal(commits.advance(0xffffffff, to('ip')), 1);
});

test('only the last 64 own commits are remembered', () => {
  const commits = new OwnCommits();
  for (let i = 0; i < 1000; i++) commits.note(i, i + 1, to('ip6'));
  assert.equal(commits.advance(1, to('ip')), 1);
  assert.equal(commits.advance(950, to('ip')), 1000);
});
