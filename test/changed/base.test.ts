import assert from 'node:assert/strict';
import { test } from 'node:test';
import { chooseBase } from './base.ts';

test('a branch is compared with the commit at which it left main', () => {
  for (const isDirty of [false, true]) {
    assert.equal(chooseBase({ head: 'h', fork: 'f', isDirty }).commit, 'f');
  }
});

test('on main itself, uncommitted changes are compared with the last commit', () => {
  assert.equal(chooseBase({ head: 'h', fork: 'h', isDirty: true }).commit, 'h');
});

test('on main itself, with everything committed, the last commit is compared with the one before', () => {
  assert.equal(chooseBase({ head: 'h', fork: 'h', isDirty: false }).commit, 'h~');
  assert.equal(chooseBase({ head: 'h', isDirty: false }).commit, 'h~');
});

test('a commit that the caller names comes first', () => {
  const base = chooseBase({ head: 'h', fork: 'f', isDirty: true }, 'v1');
  assert.deepEqual(base, { commit: 'v1', why: 'as asked for' });
});
