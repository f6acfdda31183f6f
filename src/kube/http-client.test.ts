import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import { FakeClock } from '../../test/fake-clock.ts';
import { systemClock } from '../lib/clock.ts';
import { http } from '../lib/http.ts';
import { silentLogger } from '../obs/log.ts';
import type { Labels } from '../obs/metrics.ts';
import { fixedCredentials } from './credentials.ts';
import { createRestClient } from './http-client.ts';
import type { RestMetrics } from './rest-metrics.ts';

/** Metrics that note the host of everything they count, by name. */
function hostRecorder() {
  const hosts: Record<string, unknown> = {};
  const noting = (name: string) => {
    const note = (labels?: Labels) => {
      hosts[name] = labels?.host;
    };
    return { inc: note, observe: (_value: number, labels?: Labels) => note(labels) };
  };
  const metrics: RestMetrics = {
    requests: noting('requests'),
    retries: noting('retries'),
    duration: noting('duration'),
    rateLimiterDuration: noting('rateLimiterDuration'),
    requestSize: noting('requestSize'),
    responseSize: noting('responseSize'),
  };
  return { hosts, metrics };
}

test('new settings of a client count from the next request on, and contradictory ones change nothing', async (t) => {
  const accepts: (string | undefined)[] = [];
  const server = http.createServer((request, response) => {
    accepts.push(request.headers.accept);
    response.end('{}');
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => server.close());
  const clock = new FakeClock();
  const client = createRestClient({
    access: {
      server: new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}`),
      skipVerify: false,
      disableCompression: false,
      credentials: fixedCredentials({}),
      headers: {},
    },
    userAgent: 'test',
    qps: 1,
    burst: 1,
    contentTypes: { accept: '', contentType: 'application/json' },
    clock,
    logger: silentLogger,
  });
  t.after(() => client.close());
  const get = () => client.request({ method: 'GET', path: '/x' });
  await get();
  const contentTypes = { accept: 'application/json;profile=x', contentType: '' };
  assert.throws(() => client.configure({ qps: 5, burst: 0, contentTypes }), /burst is required/);
  client.configure({ qps: -1, burst: 1, contentTypes });
  // With the former limit, these would wait for the clock, which stands still.
  await get();
  await get();
  assert.deepEqual(accepts, [
    'application/json, */*',
    'application/json;profile=x',
    'application/json;profile=x',
  ]);
});

test('metrics name the server as written in the configuration', async (t) => {
  let answers = 0;
  const server = http.createServer((request, response) => {
    request.resume();
    answers++;
    if (answers === 1) response.writeHead(503, { 'Retry-After': '0' });
    response.end('{}');
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => server.close());
  const { hosts, metrics } = hostRecorder();
  const client = createRestClient({
    access: {
      server: new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}`),
      authority: '10.96.0.1:443',
      skipVerify: false,
      disableCompression: false,
      credentials: fixedCredentials({}),
      headers: {},
    },
    userAgent: 'test',
    qps: 1000,
    burst: 1000,
    contentTypes: { accept: '', contentType: '' },
    clock: systemClock,
    logger: silentLogger,
    metrics,
  });
  t.after(() => client.close());
  await client.request({ method: 'POST', path: '/x', body: {} });
  const host = '10.96.0.1:443';
  assert.deepEqual(hosts, {
    requests: host,
    retries: host,
    duration: host,
    rateLimiterDuration: host,
    requestSize: host,
    responseSize: host,
  });
});
