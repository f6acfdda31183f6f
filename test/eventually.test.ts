import assert from 'node:assert/strict';
import { test } from 'node:test';
import { eventually, eventuallyEqual } from './eventually.ts';

const often = { everyMs: 1 };
const brief = { withinMs: 20, everyMs: 1 };

test('eventually waits for a condition that returns true, resolves to true or stops to fail an assertion', async () => {
  let looks = 0;
  await eventually('three looks', () => ++looks === 3, often);
  await eventually('five looks', async () => ++looks === 5, often);
  await eventually('seven looks', () => {
    assert.equal(++looks, 7);
    return true;
  });
  assert.equal(looks, 7);
});

test('eventually does not wait for a condition that holds at once', async () => {
  await eventually('nothing', () => true, { withinMs: 0, everyMs: 60_000 });
});

test('a time-out names what never happened, and has the text of onTimeout', async () => {
  const never = eventually('the end of the world', () => false, { ...brief, onTimeout: () => 'log' });
  await assert.rejects(never, {
    code: 'ERR_ASSERTION',
    message: 'never happened: the end of the world\nlog',
  });
});

test('a time-out has the message of the last failed assertion', async () => {
  let looks = 0;
  const condition = () => assert.fail(`look ${++looks}`);
  await assert.rejects(eventually('an end', condition, brief), (error: Error) => {
    assert.equal(error.message, `never happened: an end\nlook ${looks}`);
    return true;
  });
});

test('eventuallyEqual waits for a value, and its time-out shows how the last value differs', async () => {
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

test('an error that is no assertion ends the wait at once', async () => {
  let looks = 0;
  const condition = () => {
    looks++;
    throw new Error('the program has ended');
  };
  await assert.rejects(eventually('something', condition), /^Error: the program has ended$/);
  assert.equal(looks, 1);
});
