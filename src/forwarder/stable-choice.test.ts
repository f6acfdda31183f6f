import assert from 'node:assert/strict';
import { test } from 'node:test';
import { StableChoice } from './stable-choice.ts';

const endpoints = Array.from({ length: 5 }, (_, i) => `10.0.0.${i}:80`);
const clients = Array.from({ length: 2_000 }, (_, port) => ({ ip: '10.9.9.9', port }));
const silent = '10.0.0.3:80';

test('clients of an endpoint to avoid spread over all others, each always to the same; the rest stay', () => {
  const stable = new StableChoice(endpoints);
  const usual = clients.map((client) => stable.of(client, 'hash'));
  const avoiding = clients.map((client) => stable.of(client, 'hash', new Set([silent])));
  const again = clients.map((client) => stable.of(client, 'hash', new Set([silent])));
  assert.deepEqual(avoiding, again);
  for (const [i, endpoint] of usual.entries()) if (endpoint !== silent) assert.equal(avoiding[i], endpoint);
  const taken = avoiding.filter((_, i) => usual[i] === silent);
  assert.deepEqual(
    [...new Set(taken)].toSorted(),
    endpoints.filter((endpoint) => endpoint !== silent),
  );
});

test('when all endpoints are to be avoided, clients go where they would go usually', () => {
  const stable = new StableChoice(endpoints);
  for (const client of clients) {
    assert.equal(stable.of(client, 'hash', new Set(endpoints)), stable.of(client, 'hash'));
  }
});
