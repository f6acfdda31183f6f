import assert from 'node:assert/strict';
import { once } from 'node:events';
import { request } from 'node:http';
import { type TestContext, test } from 'node:test';
import { eventually } from '../../../test/eventually.ts';
import { API_VERSION } from '../../inspect/api.ts';
import { TRACE_HEADER } from '../../trace/page-protocol.ts';
import type { TraceReport } from '../../trace/report.ts';
import { addressOf, createPageServer } from './page-server.ts';
import type { PageTracer } from './page-trace.ts';

const fromPage = { [TRACE_HEADER]: 'page' };
const path = '/trace?name=shop/web:http/TCP';

function reportOf(subject: string): TraceReport {
  return {
    apiVersion: API_VERSION,
    kind: 'Trace',
    mode: null,
    time: '2026-01-01T00:00:00Z',
    seconds: 10,
    subject,
    limit: 5,
    isIncomplete: false,
    notShown: [],
    connections: [],
  };
}

/** Follows until the test, or the browser, ends it. */
class HeldTracer implements PageTracer {
  readonly followed: string[] = [];
  reason: string | undefined;
  aborted = 0;
  end: () => void = () => {};

  async obstacle() {
    return this.reason;
  }

  follow(name: string, signal: AbortSignal): Promise<TraceReport> {
    this.followed.push(name);
    return new Promise((resolve) => {
      this.end = () => resolve(reportOf(name));
      signal.addEventListener('abort', () => {
        this.aborted++;
        this.end();
      });
    });
  }
}

interface Served {
  readonly tracer: PageTracer;
  get(path: string, headers?: Record<string, string>, method?: string): Promise<[number, string]>;
  readonly url: string;
}

async function serve<T extends PageTracer>(t: TestContext, tracer: T): Promise<Served & { tracer: T }> {
  const noPages = { ask: () => assert.fail(), page: () => assert.fail() };
  const server = createPageServer(new Map(), noPages, tracer);
  await once(server.listen(0, '127.0.0.1'), 'listening');
  t.after(() => {
    server.close();
    server.closeAllConnections();
  });
  const url = addressOf(server);
  return {
    tracer,
    url,
    async get(asked, headers = {}, method = 'GET') {
      const sent = request(new URL(asked, url), { headers, method, agent: false }).end();
      const [response] = await once(sent, 'response');
      let text = '';
      for await (const piece of response.setEncoding('utf8')) text += piece;
      return [response.statusCode, text];
    },
  };
}

test('the page learns whether packets can be followed, and why not', async (t) => {
  const { tracer, get } = await serve(t, new HeldTracer());
  const [status, text] = await get('/trace');
  assert.deepEqual(
    [status, JSON.parse(text)],
    [200, { apiVersion: API_VERSION, kind: 'TraceAbility', obstacle: null }],
  );
  tracer.reason = 'the server of this page has no CAP_NET_ADMIN';
  assert.equal(JSON.parse((await get('/trace'))[1]).obstacle, tracer.reason);
  assert.deepEqual(await get(path, fromPage), [503, `${tracer.reason}\n`]);
  assert.deepEqual(tracer.followed, []);
});

test('a link, another site and other methods cannot follow packets', async (t) => {
  const { tracer, get, url } = await serve(t, new HeldTracer());
  const cases: readonly [number, Record<string, string>, string?][] = [
    [403, {}],
    [403, { 'Sec-Fetch-Site': 'cross-site', 'Sec-Fetch-Mode': 'navigate' }],
    [403, { ...fromPage, Origin: 'http://evil.example' }],
    [403, { ...fromPage, Host: `evil.example:${new URL(url).port}` }],
    [403, { ...fromPage, 'Sec-Fetch-Site': 'cross-site', 'Sec-Fetch-Mode': 'cors' }],
    [405, fromPage, 'HEAD'],
    [405, fromPage, 'POST'],
    [405, { 'Access-Control-Request-Headers': TRACE_HEADER }, 'OPTIONS'],
  ];
  for (const [status, headers, method] of cases) {
    assert.equal((await get(path, headers, method))[0], status, JSON.stringify([headers, method]));
  }
  assert.deepEqual(tracer.followed, []);
});

test('packets are followed for one request at a time', async (t) => {
  const { tracer, get } = await serve(t, new HeldTracer());
  const first = get(path, fromPage);
  await eventually('a trace', () => tracer.followed.length === 1);
  assert.equal((await get(path, fromPage))[0], 409);
  tracer.end();
  const [status, text] = await first;
  assert.deepEqual([status, JSON.parse(text)], [200, reportOf('shop/web:http/TCP')]);
  const second = get(path, fromPage);
  await eventually('another trace', () => tracer.followed.length === 2);
  tracer.end();
  assert.equal((await second)[0], 200);
});

test('a trace ends when the browser goes away', async (t) => {
  const { tracer, url, get } = await serve(t, new HeldTracer());
  const sent = request(new URL(path, url), { headers: fromPage, agent: false }).end();
  sent.on('error', () => undefined);
  await eventually('a trace', () => tracer.followed.length === 1);
  sent.destroy();
  await eventually('its end', () => tracer.aborted === 1);
  const next = get(path, fromPage);
  await eventually('another trace', () => tracer.followed.length === 2);
  tracer.end();
  assert.equal((await next)[0], 200);
});

test('the reason why a trace fails is answered', async (t) => {
  const failing: PageTracer = {
    obstacle: async () => undefined,
    follow: async () => {
      throw new Error('packets cannot be traced: EPERM; tracing needs CAP_NET_ADMIN');
    },
  };
  const { get } = await serve(t, failing);
  const wanted = [500, 'packets cannot be traced: EPERM; tracing needs CAP_NET_ADMIN\n'];
  assert.deepEqual(await get(path, fromPage), wanted);
  assert.deepEqual(await get(path, fromPage), wanted);
});
