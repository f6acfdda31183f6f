import assert from 'node:assert/strict';
import { test } from 'node:test';
import { linesAround } from './command-error.ts';

const input = Array.from({ length: 9 }, (_, i) => `line-${i + 1}`).join('\n');

test('three lines before and after the refused line are shown, where the input has them', () => {
  assert.deepEqual(linesAround(input, 'iptables-restore: line 5 failed'), input.split('\n').slice(1, 8));
  assert.deepEqual(linesAround(input, 'Error occurred at line: 1'), ['line-1', 'line-2', 'line-3', 'line-4']);
  assert.deepEqual(linesAround(input, 'line 9 failed').at(-1), 'line-9');
});

test('no lines are shown for an error that names no line of the input', () => {
  for (const message of ['', 'Permission denied', 'line 0 failed', 'line 99 failed']) {
    assert.deepEqual(linesAround(input, message), []);
  }
});
