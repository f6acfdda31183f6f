import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { connect } from 'node:net';
import { type TestContext, test } from 'node:test';
import { planOf, plansByKey } from '../../test/cluster/plans.ts';
import { FakeClock } from '../../test/fake-clock.ts';
import { type TestFamily, testInspector } from '../../test/inspected-proxy.ts';
import { serveHttp } from '../../test/serve-http.ts';
import { createRouter } from '../http/router.ts';
import {
  API_VERSION,
  type EndpointList,
  type LogReport,
  type NodeReport,
  type ServiceList,
} from '../inspect/api.ts';
import { systemClock } from '../lib/clock.ts';
import { silentLogger } from '../obs/log.ts';
import type { PlannedPort } from '../plan/plan.ts';
import { inspectionHandler } from './inspection-page.ts';

const web = planOf({ clusterIP: '10.96.0.1' }, [{ ip: '10.244.1.21' }]);
const BASE = '/debug/kube-proxy/';

async function serve(t: TestContext, family: TestFamily, admits = () => true): Promise<number> {
  const inspector = testInspector(family, new FakeClock());
  const handler = inspectionHandler({
    inspector,
    admits,
    node: async () => ({ apiVersion: API_VERSION, kind: 'Node' }) as NodeReport,
    log: () => ['started with token: abc\n'],
    clock: systemClock,
  });
  const { port } = await serveHttp(t, createRouter({ [`${BASE}*`]: handler }, silentLogger));
  return port;
}

async function ask(port: number, page: string, method = 'GET', headers = {}) {
  const [response] = (await once(
    request({ port, host: '127.0.0.1', path: BASE + page, method, agent: false, headers }).end(),
    'response',
  )) as [IncomingMessage];
  let body = '';
  for await (const text of response.setEncoding('utf8')) body += text;
  return { status: response.statusCode, headers: response.headers, body };
}

/** Many service ports that are quick to make: one plan under many keys. */
function many(count: number): Map<string, PlannedPort> {
  return new Map(Array.from({ length: count }, (_, i) => [`shop/web-${i}/TCP`, web]));
}

test('every inspection page is JSON of the same version, and the index lists them all', async (t) => {
  const port = await serve(t, { plans: plansByKey(web) });
  const { paths } = JSON.parse((await ask(port, '')).body) as { paths: string[] };
  const pages = paths.map((path) => path.slice(BASE.length));
  assert.deepEqual(pages, [
    'status',
    'services',
    'endpoints',
    'explain',
    'diff',
    'traffic',
    'flows',
    'affinity',
    'journal',
    'log',
    'node',
  ]);
  const query = '?source=10.0.0.1&destination=10.96.0.1&port=80';
  const kinds: unknown[] = [];
  for (const page of pages) {
    const { status, headers, body } = await ask(port, page === 'explain' ? page + query : page);
    const report = JSON.parse(body) as { apiVersion: string; kind: string };
    assert.deepEqual(
      [status, headers['content-type'], headers['cache-control']],
      [200, 'application/json', 'no-store'],
    );
    assert.equal(report.apiVersion, 'inspect.kube-proxy-ts/v1');
    kinds.push(report.kind);
  }
  assert.deepEqual(kinds, [
    'Status',
    'ServiceList',
    'EndpointList',
    'Explanation',
    'Diff',
    'Traffic',
    'FlowList',
    'AffinityList',
    'Journal',
    'Log',
    'Node',
  ]);
});

test('the log page has the last records without secrets', async (t) => {
  const port = await serve(t, {});
  const { items } = JSON.parse((await ask(port, 'log')).body) as LogReport;
  assert.deepEqual(items, [{ record: 'started with token: <redacted>\n' }]);
});

test('inspection lists can be limited to one service', async (t) => {
  const api = planOf({ clusterIP: '10.96.0.2', name: 'api' }, [{ ip: '10.244.1.22' }]);
  const port = await serve(t, { plans: plansByKey(web, api) });
  const services = JSON.parse((await ask(port, 'services?name=default/api')).body) as ServiceList;
  assert.deepEqual(
    services.items.map(({ service }) => service),
    ['default/api/TCP'],
  );
  const endpoints = JSON.parse((await ask(port, 'endpoints?name=api')).body) as EndpointList;
  assert.deepEqual(
    endpoints.items.map(({ endpoint }) => endpoint),
    ['10.244.1.22:8080'],
  );
});

test('inspection pages allow only GET and HEAD', async (t) => {
  const port = await serve(t, { plans: plansByKey(web) });
  for (const method of ['POST', 'PUT', 'DELETE', 'OPTIONS', 'PATCH']) {
    const { status, headers } = await ask(port, 'status', method);
    assert.deepEqual([status, headers.allow], [405, 'GET, HEAD'], method);
  }
  for (const page of ['status', 'services', 'diff']) {
    const { status, body } = await ask(port, page, 'HEAD');
    assert.deepEqual([status, body], [200, ''], page);
  }
});

test('a client whose address is not admitted gets a 403', async (t) => {
  const port = await serve(t, { plans: plansByKey(web) }, () => false);
  for (const page of ['', 'status', 'services', 'nope']) {
    const { status, body } = await ask(port, page);
    assert.equal(status, 403);
    assert.match(body, /not open to 127\.0\.0\.1; start kube-proxy with --inspection-from/);
  }
});

test('a request for a host name other than localhost gets a 403, so that no web page can read the answers', async (t) => {
  const port = await serve(t, { plans: plansByKey(web) });
  const askFor = (host: string) => ask(port, 'status', 'GET', { host });
  for (const host of [
    'localhost',
    'LocalHost:10249',
    '127.0.0.1:10249',
    '192.0.2.1',
    '[::1]',
    '[2001:db8::1]:80',
  ]) {
    assert.equal((await askFor(host)).status, 200, host);
  }
  for (const host of [
    'evil.example',
    'evil.example:10249',
    'localhost.evil.example',
    '127.0.0.1.evil.example',
    '[evil]',
  ]) {
    const { status, body } = await askFor(host);
    assert.equal(status, 403, host);
    assert.equal(
      body,
      `/debug/kube-proxy/ does not answer requests for host ${JSON.stringify(host)}; use an IP address or localhost\n`,
    );
  }
});

test('an unknown query parameter gets a 400 that names it and the known ones', async (t) => {
  const port = await serve(t, { plans: plansByKey(web) });
  for (const [page, message] of [
    ['services?nmae=web', 'unknown parameter "nmae"; services has name, namespace'],
    ['endpoints?name=web&x=', 'unknown parameter "x"; endpoints has name, namespace'],
    [
      'explain?source=10.0.0.1&destination=10.96.0.1&port=80&proto=UDP',
      'unknown parameter "proto"; explain has source, destination, port, protocol, interface',
    ],
    ['journal?since=5m&who=', 'unknown parameter "who"; journal has name, namespace, since'],
    ['journal?since=x', 'since "x" is neither a time in RFC 3339 nor a duration'],
    ['status?a=b', 'unknown parameter "a"; status has none'],
    ['?constructor', 'unknown parameter "constructor"; the index has none'],
  ] as const) {
    const { status, body } = await ask(port, page);
    assert.deepEqual([status, body], [400, `${message}\n`]);
  }
  assert.equal((await ask(port, 'nope?a=b')).status, 404);
});

test('unknown pages, invalid questions and early requests get different status codes', async (t) => {
  const port = await serve(t, { plans: plansByKey(web) });
  const status = async (page: string, at = port) => (await ask(at, page)).status;
  assert.deepEqual(
    [await status('nope'), await status('constructor'), await status('status/')],
    [404, 404, 404],
  );
  const bad = await ask(port, 'explain?source=a&destination=10.0.0.1&port=1');
  assert.deepEqual([bad.status, bad.body], [400, 'source "a" is not an IP address\n']);
  const early = await serve(t, { isInitialised: false });
  assert.equal(await status('explain?source=10.0.0.1&destination=10.0.0.2&port=1', early), 503);
});

test('a list of 50,000 service ports arrives complete, and other requests are answered meanwhile', async (t) => {
  const port = await serve(t, { plans: many(50_000) });
  const order: string[] = [];
  const list = ask(port, 'services').then(({ body }) => {
    order.push('list');
    return JSON.parse(body) as ServiceList;
  });
  const status = ask(port, 'status').then(() => order.push('status'));
  assert.equal((await list).items.length, 50_000);
  await status;
  assert.deepEqual(order, ['status', 'list']);
});

test('a list is not generated further after its client disconnects', async (t) => {
  let handed = 0;
  const plans = new (class extends Map<string, PlannedPort> {
    override *values(): MapIterator<PlannedPort> {
      for (; handed < 200_000; handed++) yield web;
      return undefined;
    }
  })();
  const port = await serve(t, { plans });
  const socket = connect(port, '127.0.0.1');
  socket.write(`GET ${BASE}services HTTP/1.1\r\nHost: localhost\r\n\r\n`);
  await once(socket, 'data');
  socket.destroy();
  await once(socket, 'close');
  assert.equal((await ask(port, 'status')).status, 200);
  const then = handed;
  await ask(port, 'status');
  assert.ok(handed < 200_000, `${handed} of 200,000 were handed out`);
  assert.equal(handed, then);
});
