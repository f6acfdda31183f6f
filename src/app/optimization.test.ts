import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Script } from 'node:vm';
import { optimizeAsUsual, optimizeLess } from './optimization.ts';

/** The place in a code cache where V8 notes the settings with which it was made. */
const settingsOffset = 12;

test('after a start V8 has its own settings again, so that it accepts functions compiled with these', () => {
  const before = settings();
  optimizeLess();
  const during = settings();
  optimizeAsUsual();
  assert.notEqual(during, before);
  assert.equal(settings(), before);
});

function settings(): number {
  return new Script('0').createCachedData().readUInt32LE(settingsOffset);
}
