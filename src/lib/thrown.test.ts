import assert from 'node:assert/strict';
import { test } from 'node:test';
import { asError, hasCode, messageOf } from './thrown.ts';

const missing = Object.assign(new Error('no such file'), { code: 'ENOENT' });

test('an error is itself, anything else becomes one', () => {
  assert.equal(asError(missing), missing);
  assert.equal(asError('gone').message, 'gone');
  assert.equal(asError(undefined).message, 'undefined');
});

test('the message is without the name of the error', () => {
  assert.equal(messageOf(missing), 'no such file');
  assert.equal(messageOf(7), '7');
});

test('only errors have codes', () => {
  assert.equal(hasCode(missing, 'ENOENT'), true);
  assert.equal(hasCode(missing, 'EACCES'), false);
  assert.equal(hasCode(new Error('plain'), 'ENOENT'), false);
  assert.equal(hasCode({ code: 'ENOENT' }, 'ENOENT'), false);
});
