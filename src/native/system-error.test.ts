import assert from 'node:assert/strict';
import { test } from 'node:test';
import { errnoName, isSystemError, SystemError } from './system-error.ts';

test('errno values have the names that the kernel documents', () => {
  const names = [1, 2, 11, 16, 17, 85, 95, 105, 524, 9999].map(errnoName);
  assert.deepEqual(names, [
    'EPERM',
    'ENOENT',
    'EAGAIN',
    'EBUSY',
    'EEXIST',
    'ERESTART',
    'EOPNOTSUPP',
    'ENOBUFS',
    'ENOTSUPP',
    'E9999',
  ]);
});

test('a system error names the call, the errno and its meaning', () => {
  const error = new SystemError('bind', 98);
  assert.equal(error.message, 'bind: EADDRINUSE (address already in use)');
  assert.deepEqual([error.code, error.errno, error.syscall], ['EADDRINUSE', 98, 'bind']);
  assert.ok(isSystemError(error, 'EADDRINUSE'));
  assert.ok(!isSystemError(error, 'EPERM'));
  assert.ok(!isSystemError(Object.assign(new Error('x'), { code: 'EADDRINUSE' }), 'EADDRINUSE'));
});
