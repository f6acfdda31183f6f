import assert from 'node:assert/strict';
import { test } from 'node:test';
import { defaultOptions } from '../flags.ts';
import { callOf } from './serve.ts';

test('commands on the page ask the same proxy as the page', () => {
  assert.equal(callOf(defaultOptions), 'kube-proxyctl');
  const server = 'http://127.0.0.1:8080';
  assert.equal(callOf({ ...defaultOptions, server }), 'kube-proxyctl --server=http://127.0.0.1:8080');
  assert.equal(
    callOf({ ...defaultOptions, onNode: 'node-1', context: "it's mine" }),
    "kube-proxyctl --on-node=node-1 --context='it'\\''s mine'",
  );
});
