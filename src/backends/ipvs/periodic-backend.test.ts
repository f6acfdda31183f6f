import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FakeClock } from '../../../test/fake-clock.ts';
import { silentLogger } from '../../obs/log.ts';
import type { SyncRequest } from '../backend.ts';
import { PeriodicBackend } from './periodic-backend.ts';

const periodMs = 30_000;

test('a full sync is asked for a period after the last one', async () => {
  const { backend, clock, requests } = start();
  await backend.sync(request('all'));
  await clock.advance(periodMs - 1);
  await backend.sync(request(new Set(['one'])));
  assert.equal(requests(), 0);
  await clock.advance(1);
  assert.equal(requests(), 1);
  await backend.sync(request('all'));
  await clock.advance(periodMs);
  assert.equal(requests(), 2);
});

test('also after syncs that failed, and after a first that was none of everything', async () => {
  const failing = start(() => Promise.reject(new Error('no')));
  await assert.rejects(failing.backend.sync(request('all')), /no/);
  await failing.clock.advance(periodMs);
  assert.equal(failing.requests(), 1);
  const partial = start();
  await partial.backend.sync(request(new Set()));
  await partial.clock.advance(periodMs);
  assert.equal(partial.requests(), 1);
});

test('and as soon as the node has another address', async () => {
  const { backend, clock, requests, addresses, tell } = start();
  await backend.sync(request('all'));
  await clock.advance(1_000);
  tell();
  await clock.advance(1_000);
  assert.equal(requests(), 0);
  addresses.push('192.0.2.2');
  tell();
  await clock.advance(1_000);
  assert.equal(requests(), 1);
});

test('not after it was closed, even while a sync was under way', async () => {
  const gate = Promise.withResolvers<void>();
  const { backend, clock, requests, closed } = start(() => gate.promise);
  const syncing = backend.sync(request('all'));
  const closing = backend.close();
  gate.resolve();
  await Promise.all([syncing, closing]);
  await clock.advance(periodMs);
  assert.equal(requests(), 0);
  assert.deepEqual(closed, ['watch', 'backend', 'kernel']);
});

function start(sync: () => Promise<void> = async () => {}) {
  let requests = 0;
  let told = () => {};
  const addresses = ['192.0.2.1'];
  const closed: string[] = [];
  const clock = new FakeClock();
  const backend = new PeriodicBackend({
    backend: {
      family: 'IPv4',
      sync: async () => {
        await sync();
        return { refused: [] };
      },
      close: async () => void closed.push('backend'),
    },
    clock,
    logger: silentLogger,
    addresses: {
      addresses: {
        list: async () => addresses,
        watch: (onChange) => {
          told = onChange;
          return { close: () => void closed.push('watch') };
        },
      },
      relevant: (listed) => listed,
    },
    periodMs,
    requestFullSync: () => void requests++,
    onClose: async () => void closed.push('kernel'),
  });
  return { backend, clock, requests: () => requests, closed, addresses, tell: () => told() };
}

function request(changed: SyncRequest['changed']): SyncRequest {
  return { plans: new Map(), changed, serviceCIDRs: [], totalEndpoints: 0 };
}
