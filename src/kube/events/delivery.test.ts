import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ApiError, TransportError } from '../api-error.ts';
import type { ApiRequest, RestClient } from '../rest-client.ts';
import { sendOver } from './delivery.ts';

const request = { method: 'PATCH', path: '/p', body: { a: 1 }, contentType: 'application/x' } as const;

function clientThat(answer: (request: ApiRequest) => number): RestClient {
  return {
    request: async (asked) => ({ status: answer(asked), body: undefined }),
    stream: () => Promise.reject(new Error('not used')),
    close() {},
  };
}

test('sendOver sends the content type and returns the status', async () => {
  const seen: ApiRequest[] = [];
  const send = sendOver(clientThat((asked) => seen.push(asked) && 201));
  assert.deepEqual(await send(request), { status: 201 });
  assert.deepEqual(seen, [
    { method: 'PATCH', path: '/p', body: { a: 1 }, headers: { 'Content-Type': 'application/x' } },
  ]);
});

test('sendOver returns the status and message of a refusal', async () => {
  const send = sendOver(
    clientThat(() => {
      throw new ApiError(403, 'Forbidden', 'no');
    }),
  );
  assert.deepEqual(await send(request), { status: 403, message: 'no' });
});

test('sendOver rejects when there is no answer', async () => {
  const send = sendOver(
    clientThat(() => {
      throw new TransportError('refused');
    }),
  );
  await assert.rejects(send(request), TransportError);
});
