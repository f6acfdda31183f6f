import assert from 'node:assert/strict';
import { test } from 'node:test';
import { asError, hasCode, messageOf } from './thrown.ts';

const missing = Object.assign(new Error('no such file'), { code: 'ENOENT' });

test('asError returns an error itself and wraps anything else', () => {
  assert.equal(asError(missing), missing);
  assert.equal(asError('gone').message, 'gone');
  assert.equal(asError(undefined).message, 'undefined');
});

test('messageOf returns the message without the name of the error', () => {
  assert.equal(messageOf(missing), 'no such file');
  assert.equal(messageOf(7), '7');
});

test('hasCode is true only for errors with that code', () => {
  assert.equal(hasCode(missing, 'ENOENT'), true);
  assert.equal(hasCode(missing, 'EACCES'), false);
  assert.equal(hasCode(new Error('plain'), 'ENOENT'), false);
  assert.equal(hasCode({ code: 'ENOENT' }, 'ENOENT'), false);
});
