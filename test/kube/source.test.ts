import assert from 'node:assert/strict';
import { describe } from 'node:test';
import { apiNode, apiService, apiServiceCIDR, apiSlice } from '../cluster/objects.ts';
import { listKinds, soon, type TestBed, testBoth, testNode, unhurriedTuning } from './harness.ts';

const proxyNameLabel = 'service.kubernetes.io/service-proxy-name';

function fill({ put }: TestBed['server']): void {
  for (let i = 0; i < 5; i++) {
    put('services', apiService(`svc-${i}`));
    put('endpointSlices', apiSlice(`svc-${i}`, ['10.1.0.1', '10.1.0.2']));
  }
  put('nodes', apiNode(testNode));
  put('nodes', apiNode('node-b'));
  put('serviceCIDRs', apiServiceCIDR('kubernetes', '10.96.0.0/12'));
}

describe('requests', () => {
  testBoth(
    'go to the path of each resource, with selectors, as streaming lists',
    async (testBed, encoding) => {
      await using bed = await testBed({ seed: fill });
      await bed.converge();
      const asked = bed.server.requests.map(({ path, query }) => [
        path,
        query.get('labelSelector'),
        query.get('fieldSelector'),
      ]);
      assert.deepEqual(asked.sort(), [
        ['/api/v1/nodes', null, `metadata.name=${testNode}`],
        ['/api/v1/services', `!${proxyNameLabel}`, 'spec.clusterIP!=None'],
        ['/apis/discovery.k8s.io/v1/endpointslices', '!service.kubernetes.io/headless', null],
        ['/apis/networking.k8s.io/v1/servicecidrs', null, null],
      ]);
      for (const { query, headers } of bed.server.requests) {
        assert.equal(headers.accept?.includes('protobuf'), encoding === 'protobuf');
        assert.equal(query.get('watch'), 'true');
        assert.equal(query.get('sendInitialEvents'), 'true');
        assert.equal(query.get('resourceVersionMatch'), 'NotOlderThan');
        assert.equal(query.get('allowWatchBookmarks'), 'true');
        const seconds = Number(query.get('timeoutSeconds'));
        assert.ok(seconds >= 5 && seconds <= 10);
      }
    },
  );

  testBoth('ask for compression of a streamed list, and not of the watch that follows', async (testBed) => {
    await using bed = await testBed({ seed: fill, watch: ['services'] });
    await bed.converge();
    bed.server.disconnect();
    await soon('the next watch', () => bed.server.requests.length > 1);
    const asked = bed.server.requests.slice(0, 2).map(({ headers }) => headers['accept-encoding']);
    assert.deepEqual(asked, ['gzip', 'identity']);
  });

  testBoth('for a resource cannot be started twice; another resource can be added', async (testBed) => {
    await using bed = await testBed({ seed: fill, watch: ['nodes'] });
    await bed.converge();
    assert.throws(() => bed.source.start(['nodes'], bed.mirror), /nodes are already being watched/);
    bed.source.start(['services'], bed.mirror);
    await bed.converge(['nodes', 'services']);
  });
});

describe('objects', () => {
  testBoth('are added, changed and removed', async (testBed) => {
    await using bed = await testBed({ seed: fill });
    await bed.converge();
    bed.server.put('services', apiService('svc-1', 8080));
    bed.server.put('services', apiService('new'));
    bed.server.delete('services', 'shop', 'svc-2');
    bed.server.delete('endpointSlices', 'shop', 'svc-2-0');
    bed.server.put('nodes', apiNode(testNode, 'zb'));
    bed.server.delete('serviceCIDRs', '', 'kubernetes');
    await bed.converge();
    assert.equal(bed.mirror.removals, 3);
  });

  testBoth('are removed and added as they match the selector', async (testBed) => {
    await using bed = await testBed({ seed: fill });
    await bed.converge();
    bed.server.put('services', apiService('svc-1', 80, { labels: { [proxyNameLabel]: 'other' } }));
    bed.server.put('services', apiService('svc-2', 80, { clusterIP: 'None' }));
    await bed.converge();
    assert.ok(!bed.mirror.of('services').has('shop/svc-1'));
    assert.ok(!bed.mirror.of('services').has('shop/svc-2'));
    bed.server.put('services', apiService('svc-1', 81));
    await bed.converge();
    assert.ok(bed.mirror.of('services').has('shop/svc-1'));
  });

  testBoth(
    'that cannot be decoded are ignored and logged once; the others are delivered',
    async (testBed, encoding) => {
      const seed = (server: TestBed['server']) => {
        fill(server);
        server.put('services', { metadata: { namespace: 'shop', name: 'odd' }, spec: { ports: 'none' } });
      };
      await using bed = await testBed({ seed, watch: ['services'] });
      await soon('synced', () => bed.mirror.syncedResources.length === 1);
      assert.equal(bed.mirror.of('services').size, 5);
      bed.server.disconnect();
      bed.server.put('services', apiService('after'));
      bed.server.store.compact();
      await soon('after is there', () => bed.mirror.of('services').has('shop/after'));
      const lines = bed.log.lines.filter(({ message }) => message.startsWith('Object ignored'));
      assert.equal(lines.length, 1);
      const fault = {
        json: 'spec.ports: want an array, got "none"',
        protobuf: 'spec.ports[0]: want a protobuf message, got "a field of the unknown wire type 6"',
      };
      assert.equal(lines[0]?.error, `ObjectError: Service shop/odd: ${fault[encoding]}`);
    },
  );

  testBoth(
    'that become invalid keep their last good form until they are corrected or deleted',
    async (testBed) => {
      await using bed = await testBed({ seed: fill, watch: ['services'] });
      await bed.converge();
      const before = bed.mirror.of('services').get('shop/svc-1');
      bed.server.put('services', { metadata: { namespace: 'shop', name: 'svc-1' }, spec: 5 });
      bed.server.put('services', apiService('after'));
      await soon('after is there', () => bed.mirror.of('services').has('shop/after'));
      assert.equal(bed.mirror.of('services').get('shop/svc-1'), before);
      bed.server.disconnect();
      bed.server.put('services', apiService('later'));
      bed.server.store.compact();
      await soon('later is there', () => bed.mirror.of('services').has('shop/later'));
      assert.equal(bed.mirror.of('services').get('shop/svc-1'), before);
      bed.server.put('services', apiService('svc-1', 99));
      await bed.converge();
      bed.server.put('services', { metadata: { namespace: 'shop', name: 'svc-1' }, spec: 5 });
      bed.server.delete('services', 'shop', 'svc-1');
      await bed.converge();
    },
  );
});

describe('lists', () => {
  const many = (server: TestBed['server']) => {
    for (let i = 0; i < 1200; i++) server.put('services', apiService(`svc-${i}`));
  };

  testBoth('come in pages of 500, compressed, and the watch that follows is not', async (testBed) => {
    // The limit lets one request through, and the next one after minutes.
    const client = { qps: 0.001, burst: 1 };
    await using bed = await testBed({ lists: 'pages', seed: many, watch: ['services'], client });
    await bed.converge();
    const lists = bed.server.requests.filter(({ query }) => !query.has('watch'));
    assert.deepEqual(
      lists.map(({ query }) => [query.get('limit'), query.has('continue')]),
      [
        ['500', false],
        ['500', true],
        ['500', true],
      ],
    );
    bed.server.put('services', apiService('svc-1', 99));
    await bed.converge();
    const watches = bed.server.requests.filter(({ query }) => query.has('watch'));
    assert.deepEqual(
      watches.map(({ query }) => query.has('sendInitialEvents')),
      [false],
    );
    const asked = [...lists, ...watches].map(({ headers }) => headers['accept-encoding']);
    assert.deepEqual(asked, ['gzip', 'gzip', 'gzip', 'identity']);
  });

  testBoth('come in pages from a server that refuses to stream them', async (testBed) => {
    await using bed = await testBed({
      server: { streamingLists: 'refused' },
      seed: many,
      watch: ['services'],
    });
    await bed.converge();
    assert.ok(bed.log.lines.some(({ message }) => message.startsWith('Failed to stream a list')));
  });

  testBoth('come in pages from a server that ignores sendInitialEvents', async (testBed) => {
    await using bed = await testBed({
      server: { streamingLists: 'ignored' },
      seed: many,
      watch: ['services'],
    });
    await bed.converge();
    assert.ok(bed.log.lines.some(({ message }) => message.startsWith('Failed to stream a list')));
  });

  testBoth('whose continue token expires are repeated without pages', async (testBed) => {
    await using bed = await testBed({
      lists: 'pages',
      seed: (server) => {
        many(server);
        server.faults.next({ kind: 'status', status: 410, reason: 'Expired' }, ({ query }) =>
          query.has('continue'),
        );
      },
      watch: ['services'],
    });
    await bed.converge();
    const lists = bed.server.requests.filter(({ query }) => !query.has('watch'));
    assert.deepEqual(
      lists.map(({ query }) => query.get('limit')),
      ['500', '500', null],
    );
  });

  testBoth('that break off are repeated, and nothing is lost or delivered twice', async (testBed) => {
    for (const lists of listKinds) {
      await using bed = await testBed({
        lists,
        seed: (server) => {
          many(server);
          const isList = ({ query }: { query: URLSearchParams }) =>
            query.has('sendInitialEvents') || !query.has('watch');
          server.faults.next({ kind: 'cut', afterBytes: 50_000 }, isList);
          server.faults.next({ kind: 'stall', afterBytes: 100_001 }, isList);
        },
        watch: ['services'],
      });
      await bed.converge();
      assert.equal(bed.server.faults.pending, 0);
      assert.equal(bed.mirror.upserts, 1200);
    }
  });
});

testBoth('stop ends every watch', async (testBed) => {
  await using bed = await testBed({ seed: fill, tuning: unhurriedTuning });
  await bed.converge();
  assert.equal(bed.server.watches().length, 4);
  await bed.source.stop();
  await soon('no watch is open', () => bed.server.watches().length === 0);
  bed.server.put('services', apiService('late'));
  assert.ok(!bed.mirror.of('services').has('shop/late'));
});
