import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { type AddressInfo, createServer as createTcpServer } from 'node:net';
import { describe, test } from 'node:test';
import type { HttpClientOptions } from '../../src/kube/http-client.ts';
import type { RestClient } from '../../src/kube/rest-client.ts';
import type { RestMetrics } from '../../src/kube/rest-metrics.ts';
import type { Labels } from '../../src/obs/metrics.ts';
import { type ApiServer, type ApiServerOptions, startApiServer } from '../cluster/apiserver/server.ts';
import { apiNode, apiService } from '../cluster/objects.ts';
import { FakeClock } from '../fake-clock.ts';
import { LogRecorder } from '../log-recorder.ts';
import { plainAccess, soon, testClient } from './harness.ts';

interface Pair {
  readonly server: ApiServer;
  readonly client: RestClient;
  readonly log: LogRecorder;
  [Symbol.asyncDispose](): Promise<void>;
}

async function pair(options: Partial<HttpClientOptions> = {}, serving: ApiServerOptions = {}): Promise<Pair> {
  const server = await startApiServer(serving);
  const log = new LogRecorder();
  const contentTypes = { accept: '', contentType: 'application/json' };
  const client = testClient(plainAccess(server.url), { logger: log, contentTypes, ...options });
  return {
    server,
    client,
    log,
    async [Symbol.asyncDispose]() {
      client.close();
      await server.close();
    },
  };
}

const nodes = { method: 'GET', path: '/api/v1/nodes' } as const;
const protobuf = 'application/vnd.kubernetes.protobuf';
const eventsPath = '/apis/events.k8s.io/v1/namespaces/default/events';

async function textOf(chunks: AsyncIterable<Uint8Array>): Promise<string> {
  const pieces: Uint8Array[] = [];
  for await (const chunk of chunks) pieces.push(chunk);
  return Buffer.concat(pieces).toString();
}

const linesBut = (log: LogRecorder, message: string) => log.lines.filter((line) => line.message !== message);

describe('a request', () => {
  test('reads, creates and patches', async () => {
    await using p = await pair();
    p.server.put('nodes', apiNode('a'));
    const read = await p.client.request({ ...nodes, path: '/api/v1/nodes/a' });
    assert.deepEqual((read.body as { kind: string }).kind, 'Node');
    const event = { metadata: { name: 'e.1', namespace: 'default' }, reason: 'Starting' };
    const created = await p.client.request({ method: 'POST', path: eventsPath, body: event });
    assert.equal(created.status, 201);
    const patched = await p.client.request({
      method: 'PATCH',
      path: `${eventsPath}/e.1`,
      body: { series: { count: 2 } },
      headers: { 'Content-Type': 'application/merge-patch+json' },
    });
    const body = patched.body as { reason: string; series: { count: number } };
    assert.deepEqual([body.reason, body.series], ['Starting', { count: 2 }]);
    assert.equal(p.server.requests.at(-1)?.headers['content-type'], 'application/merge-patch+json');
  });

  test('has a User-Agent and an Accept header', async () => {
    await using p = await pair({
      contentTypes: { accept: '', contentType: protobuf },
    });
    await p.client.request({ ...nodes, query: { labelSelector: '!a/b', fieldSelector: 'metadata.name=a' } });
    const [asked] = p.server.requests;
    assert.equal(asked?.headers['user-agent'], 'kube-proxy/test');
    assert.equal(asked?.headers.accept, `${protobuf}, */*`);
    assert.equal(asked?.headers['accept-encoding'], 'gzip');
    assert.equal(asked?.query.get('labelSelector'), '!a/b');
    assert.deepEqual(linesBut(p.log, 'Response'), []);
  });

  test('names content types that the client cannot read in the log', async () => {
    await using p = await pair({
      contentTypes: { accept: 'application/cbor,application/json', contentType: '' },
    });
    await p.client.request(nodes);
    assert.equal(p.server.requests[0]?.headers.accept, 'application/json');
    assert.deepEqual(
      linesBut(p.log, 'Response').map(({ message, attributes }) => [message, attributes]),
      [['Ignoring content types that cannot be read', { types: 'application/cbor' }]],
    );
  });

  for (const status of [406, 415] as const) {
    test(`asks for JSON after status ${status}, and from then on at once`, async () => {
      const contentTypes = { accept: '', contentType: protobuf };
      await using p = await pair({ contentTypes }, { protobuf: status });
      const list = { ...nodes, idleMs: () => 1000 };
      for (let i = 0; i < 3; i++) {
        const body = await p.client.stream(list);
        assert.equal(body.contentType, 'application/json');
        assert.match(await textOf(body), /NodeList/);
      }
      const accepted = p.server.requests.map(({ headers }) => headers.accept);
      const json = 'application/json';
      assert.deepEqual(accepted, [`${protobuf}, */*`, json, json, json]);
      await p.client.request({ method: 'POST', path: eventsPath, body: { metadata: { name: 'x' } } });
      assert.equal(p.server.requests.at(-1)?.headers.accept, json);
      assert.equal(p.log.lines.filter(({ message }) => message.includes('using JSON')).length, 1);
    });
  }

  test('that is refused in protobuf carries status, reason and message', async () => {
    await using p = await pair({ contentTypes: { accept: '', contentType: protobuf } });
    const none = { ...nodes, path: '/api/v1/nodes/none', idleMs: () => 1000 };
    await assert.rejects(p.client.stream(none), {
      name: 'ApiError',
      status: 404,
      reason: 'NotFound',
      message: '"none" not found',
    });
  });

  test('keeps the path of the server URL', async () => {
    const paths: (string | undefined)[] = [];
    const server = createServer((request, response) => {
      paths.push(request.url);
      response.end('{}');
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    const client = testClient(plainAccess(`http://127.0.0.1:${port}/k8s/clusters/c-1/`));
    await client.request({ ...nodes, query: { limit: '5' } });
    client.close();
    server.close();
    assert.deepEqual(paths, ['/k8s/clusters/c-1/api/v1/nodes?limit=5']);
  });

  test('that is refused carries status, reason and message', async () => {
    await using p = await pair();
    await assert.rejects(p.client.request({ ...nodes, path: '/api/v1/nodes/none' }), {
      name: 'ApiError',
      code: 'KPT_API_STATUS',
      status: 404,
      reason: 'NotFound',
      message: '"none" not found',
    });
  });

  test('that is refused by a proxy carries the status', async () => {
    const server = createServer((_, response) => response.writeHead(502).end('<h1>Bad gateway</h1>'));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const client = testClient(plainAccess(`http://127.0.0.1:${(server.address() as AddressInfo).port}`));
    await assert.rejects(client.request(nodes), {
      name: 'ApiError',
      status: 502,
      reason: '',
      message: 'the server answered with status 502: <h1>Bad gateway</h1>',
    });
    client.close();
    server.close();
  });

  test('is repeated after Retry-After, and given up after ten repetitions', async () => {
    await using p = await pair();
    const busy = { kind: 'status', status: 429, reason: 'TooManyRequests', retryAfter: 0 } as const;
    for (let i = 0; i < 3; i++) p.server.faults.next(busy);
    assert.equal((await p.client.request(nodes)).status, 200);
    assert.equal(p.server.requests.length, 4);
    for (let i = 0; i < 20; i++) p.server.faults.next(busy);
    await assert.rejects(p.client.request(nodes), { status: 429, retryAfterSeconds: 0 });
    assert.equal(p.server.faults.pending, 9);
  });

  test('whose answer is not JSON fails', async () => {
    await using p = await pair();
    p.server.faults.next({ kind: 'garbage' });
    await assert.rejects(p.client.request(nodes), { name: 'TransportError', message: /not JSON/ });
    // The first cut hits a kept connection, which is forgiven.
    p.server.faults.next({ kind: 'reset' });
    p.server.faults.next({ kind: 'reset' });
    await assert.rejects(p.client.request(nodes), { name: 'TransportError', code: 'KPT_API_TRANSPORT' });
    assert.equal(p.server.faults.pending, 0);
    p.server.faults.next({ kind: 'cut', afterBytes: 10 });
    await assert.rejects(p.client.request(nodes), {
      name: 'TransportError',
      message: 'the connection was cut before the answer was complete',
    });
  });

  test('fails when its time is up, without an answer or with a part of it', async () => {
    await using p = await pair();
    for (const fault of [{ kind: 'hang' }, { kind: 'stall', afterBytes: 10 }] as const) {
      p.server.faults.next(fault);
      await assert.rejects(p.client.request({ ...nodes, timeoutMs: 30 }), {
        name: 'TransportError',
        message: 'the answer was not complete after 0.03 s',
      });
    }
  });

  test('fails with the reason of its abort', async () => {
    await using p = await pair();
    p.server.faults.next({ kind: 'hang' });
    const abort = new AbortController();
    const given = assert.rejects(p.client.request({ ...nodes, signal: abort.signal }), /changed my mind/);
    await soon('it is sent', () => p.server.requests.length === 1);
    abort.abort(new Error('changed my mind'));
    await given;
  });

  test('fails when the client is closed', async () => {
    await using p = await pair();
    p.server.faults.next({ kind: 'hang' });
    const given = assert.rejects(p.client.request(nodes), {
      name: 'TransportError',
      message: 'the client is closed',
    });
    await soon('it is sent', () => p.server.requests.length === 1);
    p.client.close();
    await given;
  });

  test('waits for the rate limiter', async () => {
    const clock = new FakeClock();
    await using p = await pair({ qps: 5, burst: 2, clock });
    const sent = [p.client.request(nodes), p.client.request(nodes), p.client.request(nodes)];
    await Promise.all(sent.slice(0, 2));
    assert.equal(p.server.requests.length, 2);
    await clock.advance(200);
    await Promise.all(sent);
    assert.equal(p.server.requests.length, 3);
  });
});

describe('connections', () => {
  test('are kept alive and reused', async () => {
    await using p = await pair();
    const ports = new Set<number | undefined>();
    for (let i = 0; i < 5; i++) {
      await p.client.request(nodes);
      await textOf(await p.client.stream({ ...nodes, idleMs: () => 1000 }));
      ports.add(p.server.requests.at(-1)?.port);
    }
    assert.equal(ports.size, 1);
  });

  test('that the server has closed do not make a read fail', async () => {
    let answered = 0;
    // Answers one request per connection although it announces keep-alive, as a restarting server does.
    const server = createTcpServer((socket) => {
      socket.on('error', () => {});
      socket.once('data', () => {
        answered++;
        socket.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: keep-alive\r\n\r\n{}');
        socket.once('data', () => socket.destroy());
      });
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const client = testClient(plainAccess(`http://127.0.0.1:${(server.address() as AddressInfo).port}`));
    for (let i = 0; i < 4; i++) assert.equal((await client.request(nodes)).status, 200);
    await assert.rejects(client.request({ method: 'POST', path: '/x', body: {} }), {
      name: 'TransportError',
    });
    client.close();
    server.close();
    assert.equal(answered, 4, 'a write is not sent twice');
  });
});

describe('a stream', () => {
  test('is decompressed', async () => {
    await using p = await pair({}, { gzipAbove: 0 });
    for (let i = 0; i < 300; i++) p.server.put('services', apiService(`svc-${i}`));
    const plain = testClient({ ...plainAccess(p.server.url), disableCompression: true });
    const request = { method: 'GET', path: '/api/v1/services', idleMs: () => 1000 } as const;
    const packed = await textOf(await p.client.stream(request));
    assert.equal(JSON.parse(packed).items.length, 300);
    assert.equal(packed, await textOf(await plain.stream(request)));
    assert.equal(p.server.requests.at(-1)?.headers['accept-encoding'], 'identity');
    plain.close();
  });

  test('fails after the idle time, which may change', async () => {
    await using p = await pair();
    p.server.put('nodes', apiNode('a'));
    let patience = 5000;
    const watch = { ...nodes, query: { watch: 'true' }, idleMs: () => patience, unthrottled: true };
    await assert.rejects(
      async () => {
        for await (const _ of await p.client.stream(watch)) patience = 20;
      },
      { name: 'IdleError', message: 'nothing received for 0.02 s' },
    );
  });

  test('does not fail when its data has arrived but the process was too busy to read it', async () => {
    await using p = await pair();
    p.server.put('nodes', apiNode('a'));
    const watch = { ...nodes, query: { watch: 'true' }, idleMs: () => 20, unthrottled: true };
    const received: string[] = [];
    await assert.rejects(
      async () => {
        for await (const chunk of await p.client.stream(watch)) {
          received.push(Buffer.from(chunk).toString());
          if (received.length > 1) continue;
          setImmediate(() => {
            p.server.put('nodes', apiNode('b'));
            Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 60);
          });
        }
      },
      { name: 'IdleError' },
    );
    assert.match(received[1] ?? '', /"name":"b"/);
  });

  test('is closed when its consumer leaves the loop', async () => {
    await using p = await pair();
    p.server.put('nodes', apiNode('a'));
    const watch = { ...nodes, query: { watch: 'true' }, idleMs: () => 5000, unthrottled: true };
    for await (const _ of await p.client.stream(watch)) break;
    await soon('the end of the watch', () => p.server.watches().length === 0);
  });

  test('that is refused rejects at once', async () => {
    await using p = await pair();
    p.server.faults.next({ kind: 'status', status: 429, reason: 'TooManyRequests', retryAfter: 3 });
    await assert.rejects(p.client.stream({ ...nodes, idleMs: () => 1000 }), {
      status: 429,
      retryAfterSeconds: 3,
    });
  });
});

test('requests are counted and measured', async () => {
  const seen: [metric: string, labels: Labels | undefined][] = [];
  const record = (metric: string) => ({
    inc: (labels?: Labels) => seen.push([metric, labels]),
    observe: (_: number, labels?: Labels) => seen.push([metric, labels]),
  });
  const metrics: RestMetrics = {
    requests: record('requests'),
    retries: record('retries'),
    duration: record('duration'),
    rateLimiterDuration: record('limiter'),
    requestSize: record('requestSize'),
    responseSize: record('responseSize'),
  };
  await using p = await pair({ metrics, qps: 100, burst: 100 });
  const { host } = new URL(p.server.url);
  p.server.faults.next({ kind: 'status', status: 503, retryAfter: 0 });
  await p.client.request({ method: 'POST', path: eventsPath, body: { metadata: { name: 'x' } } });
  // The first cut hits a kept connection, which is forgiven.
  p.server.faults.next({ kind: 'reset' });
  p.server.faults.next({ kind: 'reset' });
  await assert.rejects(
    p.client.stream({ ...nodes, query: { watch: 'true' }, idleMs: () => 1, unthrottled: true }),
  );
  const verb = 'POST';
  assert.deepEqual(seen, [
    ['limiter', { verb, host }],
    ['requestSize', { verb, host }],
    ['requests', { code: '503', method: verb, host }],
    ['duration', { verb, host }],
    ['retries', { code: '503', verb, host }],
    ['limiter', { verb, host }],
    ['requestSize', { verb, host }],
    ['requests', { code: '201', method: verb, host }],
    ['duration', { verb, host }],
    ['responseSize', { verb, host }],
    ['requests', { code: '<error>', method: 'GET', host }],
  ]);
});
