import assert from 'node:assert/strict';
import { describe } from 'node:test';
import type { Fault } from '../cluster/apiserver/faults.ts';
import type { Watch } from '../cluster/apiserver/watch.ts';
import { apiService } from '../cluster/objects.ts';
import {
  listKinds,
  type StartTestBed,
  soon,
  type TestBed,
  type TestBedOptions,
  testBoth,
} from './harness.ts';

function fill({ put }: TestBed['server']): void {
  for (let i = 0; i < 20; i++) put('services', apiService(`svc-${i}`));
}

function watchedServices(start: StartTestBed, options: TestBedOptions = {}): Promise<TestBed> {
  return start({ ...options, seed: fill, watch: ['services'] });
}

async function watchOf({ server }: TestBed): Promise<Watch> {
  await soon('a watch is open', () => server.watches('services').length > 0);
  const [watch] = server.watches('services');
  assert.ok(watch);
  return watch;
}

/** Changes of every kind. One is a deletion, which a disconnected client must infer from the next list. */
function change({ server }: TestBed): void {
  server.put('services', apiService('svc-1', 8080));
  server.delete('services', 'shop', 'svc-2');
  server.put('services', apiService('new'));
}

const disturbances: Record<string, (watch: Watch) => void> = {
  'a connection cut between events': (watch) => watch.drop(),
  'a connection cut inside an event': (watch) => watch.cutInsideEvent(),
  'a watch ended by the server': (watch) => watch.end(),
  'bytes that mean nothing': (watch) => watch.garbage(),
  'a connection that goes silent': (watch) => watch.stall(),
  'an event of an unknown type': (watch) => watch.send('SHRUG', {}),
  'an event without an object': (watch) => watch.send('ADDED'),
  'an event with an empty object': (watch) => watch.send('ADDED', {}),
  'a bookmark without a version': (watch) => watch.send('BOOKMARK', { metadata: {} }),
  'an internal error inside the watch': (watch) => watch.error(500, 'InternalError', 'etcd is tired'),
  'expiry inside the watch': (watch) => watch.error(410, 'Expired', 'too old resource version'),
  'expiry under its older name': (watch) => watch.error(410, 'Gone', 'too old resource version'),
  'expiry with a reason but no code': (watch) => watch.error(0, 'Expired', 'too old'),
};

describe('a watch survives', () => {
  for (const [name, disturb] of Object.entries(disturbances)) {
    testBoth(name, async (testBed) => {
      await using bed = await watchedServices(testBed);
      await bed.converge();
      disturb(await watchOf(bed));
      change(bed);
      await bed.converge();
      change(bed);
      await bed.converge();
    });
  }
});

const answers: Record<string, Fault> = {
  'a 500': { kind: 'status', status: 500, reason: 'InternalError' },
  'a 429 that says when to come back': {
    kind: 'status',
    status: 429,
    reason: 'TooManyRequests',
    retryAfter: 0,
  },
  'a 403': { kind: 'status', status: 403, reason: 'Forbidden' },
  'a 404': { kind: 'status', status: 404, reason: 'NotFound' },
  'a 410': { kind: 'status', status: 410, reason: 'Expired' },
  'a connection cut without an answer': { kind: 'reset' },
  'an answer that means nothing': { kind: 'garbage' },
  'an answer cut short': { kind: 'cut', afterBytes: 700 },
  'an answer that stops half-way': { kind: 'stall', afterBytes: 700 },
  'an answer in small pieces': { kind: 'trickle', bytes: 500, everyMs: 1 },
};

describe('connecting again survives', () => {
  for (const lists of listKinds) {
    for (const [name, fault] of Object.entries(answers)) {
      testBoth(`${name} (${lists})`, async (testBed) => {
        await using bed = await watchedServices(testBed, { lists });
        await bed.converge();
        const errors = bed.log.lines.length;
        const watch = await watchOf(bed);
        for (let i = 0; i < 2; i++) bed.server.faults.next(fault);
        watch.drop();
        change(bed);
        bed.server.store.compact();
        await bed.converge();
        await soon('all faults', () => bed.server.faults.pending === 0);
        if (fault.kind !== 'trickle') assert.ok(bed.log.lines.length > errors, 'failures are logged');
      });
    }
  }
});

describe('a client that was away', () => {
  testBoth('resumes from its last version, without a list', async (testBed) => {
    await using bed = await watchedServices(testBed);
    await bed.converge();
    const version = String(bed.server.store.version);
    (await watchOf(bed)).drop();
    change(bed);
    await bed.converge();
    const last = bed.server.requests.at(-1)?.query;
    assert.equal(last?.get('resourceVersion'), version);
    assert.equal(last?.has('sendInitialEvents'), false);
    assert.equal(bed.mirror.upserts, 22);
  });

  testBoth('resumes from a bookmark when no object has changed', async (testBed) => {
    await using bed = await watchedServices(testBed);
    await bed.converge();
    bed.server.put('nodes', { metadata: { name: 'elsewhere' } });
    const requests = bed.server.requests.length;
    const watch = await watchOf(bed);
    watch.bookmark();
    watch.end();
    await soon('a new watch', () => bed.server.requests.length > requests);
    assert.equal(bed.server.requests.at(-1)?.query.get('resourceVersion'), String(bed.server.store.version));
  });

  for (const reportsExpiry of ['status', 'event'] as const) {
    for (const lists of listKinds) {
      testBoth(`learns of deletions it missed (expiry as ${reportsExpiry}, ${lists})`, async (testBed) => {
        await using bed = await watchedServices(testBed, { server: { reportsExpiry }, lists });
        await bed.converge();
        const version = String(bed.server.store.version);
        (await watchOf(bed)).drop();
        change(bed);
        bed.server.delete('services', 'shop', 'svc-3');
        bed.server.store.compact();
        await bed.converge();
        assert.equal(bed.mirror.removals, 2);
        assert.equal(bed.mirror.upserts, 22, 'what did not change is not delivered again');
        const resumed = bed.server.requests.filter(({ query }) => query.get('resourceVersion') === version);
        // After a list in pages the first watch begins at the same version.
        assert.equal(resumed.length, lists === 'pages' ? 2 : 1, 'an expired version is tried once');
      });
    }
  }

  testBoth('removes nothing while the server is away', async (testBed) => {
    const bed = await watchedServices(testBed);
    await bed.converge();
    await bed.server.close();
    const isRefused = ({ error = '' }) => error.includes('ECONNREFUSED');
    await soon('retries', () => bed.log.lines.filter(isRefused).length > 3);
    assert.equal(bed.mirror.of('services').size, 20);
    assert.equal(bed.mirror.removals, 0);
    await bed.source.stop();
    bed.client.close();
  });

  testBoth('retries as soon as another resource succeeds', async (testBed) => {
    const backoff = { initialMs: 60_000, maxMs: 60_000, jitter: 0 };
    await using bed = await testBed({ seed: fill, watch: ['services'], tuning: { backoff } });
    await bed.converge();
    (await watchOf(bed)).drop();
    await soon('a failure', () => bed.log.lines.some(({ error }) => error));
    change(bed);
    bed.source.start(['nodes'], bed.mirror);
    await bed.converge();
  });

  testBoth('keeps trying a server that does not answer at first', async (testBed) => {
    await using bed = await testBed({
      seed: (server) => {
        fill(server);
        for (let i = 0; i < 20; i++) server.faults.next({ kind: 'reset' });
      },
      watch: ['services'],
    });
    await bed.converge();
    assert.equal(bed.server.faults.pending, 0);
  });
});

describe('events', () => {
  testBoth('that arrive twice are delivered once', async (testBed) => {
    await using bed = await watchedServices(testBed);
    await bed.converge();
    const watch = await watchOf(bed);
    for (let i = 0; i < 10; i++) {
      bed.server.put('services', apiService('svc-1', 1000 + i));
      watch.duplicate();
      watch.duplicate();
    }
    bed.server.delete('services', 'shop', 'svc-1');
    watch.duplicate();
    bed.server.put('services', apiService('end'));
    await bed.converge();
    assert.equal(bed.mirror.upserts, 20 + 10 + 1);
    assert.equal(bed.mirror.removals, 1);
  });

  testBoth('that are older change nothing and do not restore deleted objects', async (testBed) => {
    await using bed = await watchedServices(testBed);
    await bed.converge();
    for (let i = 0; i < 5; i++) bed.server.put('services', apiService('svc-1', 1000 + i));
    bed.server.delete('services', 'shop', 'svc-1');
    bed.server.put('services', apiService('svc-2', 99));
    await bed.converge();
    const { upserts, removals } = bed.mirror;
    const watch = await watchOf(bed);
    for (const old of bed.server.store.changesSince('services', 0)) watch.replay(old);
    bed.server.put('services', apiService('end'));
    await bed.converge();
    assert.equal(bed.mirror.upserts, upserts + 1);
    assert.equal(bed.mirror.removals, removals);
  });

  testBoth('that are older do not restore objects deleted during an outage', async (testBed) => {
    await using bed = await watchedServices(testBed);
    await bed.converge();
    const old = bed.server.store.changesSince('services', 0);
    (await watchOf(bed)).drop();
    bed.server.delete('services', 'shop', 'svc-1');
    bed.server.store.compact();
    await bed.converge();
    const watch = await watchOf(bed);
    for (const past of old) watch.replay(past);
    bed.server.put('services', apiService('end'));
    await bed.converge();
    assert.ok(!bed.mirror.of('services').has('shop/svc-1'));
  });
});

testBoth('a refused resource does not delay the others', async (testBed) => {
  const isRefused = ({ path }: { path: string }) => path.includes('servicecidrs');
  await using bed = await testBed({
    seed: (server) => {
      fill(server);
      for (let i = 0; i < 50; i++) {
        server.faults.next({ kind: 'status', status: 403, reason: 'Forbidden', message: 'no' }, isRefused);
      }
    },
  });
  await bed.converge(['services', 'endpointSlices', 'nodes']);
  await soon('retries', () => bed.server.faults.pending < 45);
  assert.ok(!bed.mirror.syncedResources.includes('serviceCIDRs'));
  bed.server.faults.clear();
  await bed.converge();
});
