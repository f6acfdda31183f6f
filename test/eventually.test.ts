import assert from 'node:assert/strict';
import { test } from 'node:test';
import { eventually, eventuallyEqual } from './eventually.ts';

const often = { everyMs: 1 };
const brief = { withinMs: 20, everyMs: 1 };

test('looks until it holds, be it told by a value, a promise or assertions that no longer fail', async () => {
  let looks = 0;
  await eventually('three looks', () => ++looks === 3, often);
  await eventually('five looks', async () => ++looks === 5, often);
  await eventually('seven looks', () => {
    assert.equal(++looks, 7);
    return true;
  });
  assert.equal(looks, 7);
});

test('what holds at once is not waited for, however little time there is', async () => {
  await eventually('nothing', () => true, { withinMs: 0, everyMs: 60_000 });
});

test('says what never happened, and what is known besides', async () => {
  const never = eventually('the end of the world', () => false, { ...brief, onTimeout: () => 'log' });
  await assert.rejects(never, {
    code: 'ERR_ASSERTION',
    message: 'never happened: the end of the world\nlog',
  });
});

test('says what the last assertion said', async () => {
  let looks = 0;
  const condition = () => assert.fail(`look ${++looks}`);
  await assert.rejects(eventually('an end', condition, brief), (error: Error) => {
    assert.equal(error.message, `never happened: an end\nlook ${looks}`);
    return true;
  });
});

test('looks until it sees what is wanted, or tells how the last look differs', async () => {
  let looks = 0;
  await eventuallyEqual('three looks', () => ({ looks: ++looks }), { looks: 3 }, often);
  await eventuallyEqual('five looks', async () => [++looks], [5], often);
  const never = eventuallyEqual('the first look', () => [++looks], [1], { ...brief, onTimeout: () => 'log' });
  await assert.rejects(never, (error: Error) => {
    assert.match(error.message, /^never happened: the first look\n/);
    assert.match(error.message, new RegExp(`\\+ +${looks}\n- +1\n[^]*\nlog$`));
    return true;
  });
});

test('another error ends the waiting at once', async () => {
  let looks = 0;
  const condition = () => {
    looks++;
    throw new Error('the program has ended');
  };
  await assert.rejects(eventually('something', condition), /^Error: the program has ended$/);
  assert.equal(looks, 1);
});
