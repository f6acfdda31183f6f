import assert from 'node:assert/strict';
import { test } from 'node:test';
import { harmless, painter } from './terminal.ts';

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

test('text of others is made harmless, and keeps the colours of the painter', () => {
  assert.equal(harmless('plain … text'), 'plain … text');
  assert.equal(harmless('\u001b[31mred\u001b[0m'), '\u001b[31mred\u001b[0m');
  assert.equal(
    harmless('\u001b[2Ja\u001b]0;title\u0007\n\u009b1A\u001b[8mhidden'),
    '?[2Ja?]0;title???1A?[8mhidden',
  );
});
