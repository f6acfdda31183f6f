import assert from 'node:assert/strict';
import { test } from 'node:test';
import { painter } from './terminal.ts';

for (const [isTTY, env, isColoured] of [
  [true, {}, true],
  [true, { NO_COLOR: '' }, true],
  [true, { NO_COLOR: '1' }, false],
  [true, { TERM: 'dumb' }, false],
  [false, {}, false],
  [undefined, {}, false],
] as const) {
  test(`the output has ${isColoured ? 'colours' : 'no colours'} with isTTY ${isTTY} and ${JSON.stringify(env)}`, () => {
    const stream = { write: () => true };
    const paint = painter({ stdout: { ...stream, isTTY }, stderr: stream, env });
    assert.equal(paint('red', 'x'), isColoured ? '\u001b[31mx\u001b[0m' : 'x');
  });
}
