import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Track } from './track.ts';

test('a value may be in effect until a later one is known to be', () => {
  const track = new Track('none');
  track.set('old', 10);
  track.set('new', 20);
  assert.deepEqual(track.during(11, 12), ['none', 'old']);
  assert.deepEqual(track.during(25, 26), ['none', 'old', 'new']);
  track.settle(15, 30);
  assert.deepEqual(track.during(31, 32), ['old', 'new']);
  track.settle(25, 40);
  assert.deepEqual(track.during(41, 42), ['new']);
  assert.deepEqual(track.during(35, 42), ['old', 'new']);
  track.forget(41);
  assert.deepEqual(track.during(0, 42), ['new']);
});
