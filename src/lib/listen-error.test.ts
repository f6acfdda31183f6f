import assert from 'node:assert/strict';
import { test } from 'node:test';
import { listenErrorText } from './listen-error.ts';

test("listen errors of the system have Go's form, others keep their message", () => {
  const inUse = Object.assign(new Error('listen EADDRINUSE: address already in use 0.0.0.0:32100'), {
    errno: -98,
  });
  assert.equal(
    listenErrorText('0.0.0.0:32100', inUse),
    'listen tcp 0.0.0.0:32100: bind: address already in use',
  );
  assert.equal(listenErrorText('0.0.0.0:32100', new Error('odd')), 'odd');
});
