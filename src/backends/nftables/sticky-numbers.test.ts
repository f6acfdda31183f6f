import assert from 'node:assert/strict';
import { test } from 'node:test';
import { StickyNumbers } from './sticky-numbers.ts';

test('members that stay keep their number, one that returns gets a new one', () => {
  const numbers = new StickyNumbers();
  const first = numbers.renew(undefined, new Set(['a', 'b']));
  const second = numbers.renew(first, new Set(['b']));
  const third = numbers.renew(second, new Set(['a', 'b']));
  assert.equal(third.service, first.service);
  assert.equal(third.members.get('b'), first.members.get('b'));
  assert.notEqual(third.members.get('a'), first.members.get('a'));
});

test('member numbers leave out those of the lists and go round past their end', () => {
  const numbers = new StickyNumbers();
  const start = { service: 9, members: new Map([['a', 2]]), nextMember: 0xffff };
  const next = numbers.renew(start, new Set(['a', 'b', 'c']));
  assert.deepEqual([...next.members.values()], [2, 0xffff, 3]);
});

test('services get distinct numbers, and one that was released is not the next to be used', () => {
  const numbers = new StickyNumbers();
  const a = numbers.renew(undefined, new Set()).service;
  numbers.release(a);
  assert.notEqual(numbers.renew(undefined, new Set()).service, a);
});

test('a reserved number is not handed out', () => {
  const numbers = new StickyNumbers();
  assert.equal(numbers.reserve(1), true);
  assert.equal(numbers.reserve(1), false);
  assert.notEqual(numbers.renew(undefined, new Set()).service, 1);
});

test('running out of service numbers is an error that says so', () => {
  const numbers = new StickyNumbers();
  for (let service = 1; service <= 0xffff; service++) numbers.reserve(service);
  assert.throws(() => numbers.renew(undefined, new Set()), /more than 65535 service ports/);
});
