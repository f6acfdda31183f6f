import assert from 'node:assert/strict';
import { test } from 'node:test';
import { markText } from './mark.ts';

test('a bit is eight digits', () => {
  assert.deepEqual([0, 14, 31].map(markText), ['0x00000001', '0x00004000', '0x80000000']);
});
