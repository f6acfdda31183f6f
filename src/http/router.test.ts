import assert from 'node:assert/strict';
import { once } from 'node:events';
import { Agent, type IncomingMessage, request } from 'node:http';
import { connect } from 'node:net';
import { type TestContext, test } from 'node:test';
import { FakeClock } from '../../test/fake-clock.ts';
import { serveHttp } from '../../test/serve-http.ts';
import { reply } from '../lib/http.ts';
import { silentLogger } from '../obs/log.ts';
import { createRouter, type Routes, textHeaders } from './router.ts';

function serve(t: TestContext, routes: Routes, logger = silentLogger) {
  return serveHttp(t, createRouter(routes, logger));
}

/** Sends bytes as they are and reads until the server ends the connection. */
async function raw(port: number, text: string): Promise<string> {
  const socket = connect(port, '127.0.0.1');
  socket.end(text);
  let answer = '';
  for await (const chunk of socket) answer += chunk;
  return answer;
}

const hello: Routes = {
  '/hello': (_request, response) => reply(response, 200, textHeaders, 'hi'),
  '/below/*': (_request, response, { path }) => reply(response, 200, textHeaders, path),
  '/query': (_request, response, { query }) => reply(response, 200, textHeaders, query.getAll('a').join()),
};

test('routes match exact paths and prefixes, and everything else is 404', async (t) => {
  const { url } = await serve(t, hello);
  const text = async (path: string) => {
    const response = await fetch(url + path);
    return `${response.status} ${await response.text()}`;
  };
  assert.equal(await text('/hello'), '200 hi');
  assert.equal(await text('/hell%6f?x=1'), '200 hi');
  assert.equal(await text('/below/a/b'), '200 /below/a/b');
  assert.equal(await text('/query?a=1&b=2&a=3'), '200 1,3');
  for (const path of ['/', '/hello/', '//hello', '/Hello', '/below', '/nosuch']) {
    assert.equal(await text(path), '404 404 page not found\n', path);
  }
  const missing = await fetch(`${url}/nosuch`);
  assert.equal(missing.headers.get('content-type'), 'text/plain; charset=utf-8');
  assert.equal(missing.headers.get('x-content-type-options'), 'nosniff');
});

test('HEAD returns the headers of GET without the body', async (t) => {
  const { url } = await serve(t, hello);
  const response = await fetch(`${url}/hello`, { method: 'HEAD' });
  assert.equal(response.status, 200);
  assert.equal(response.headers.get('content-length'), '2');
  assert.equal(await response.text(), '');
});

test('invalid requests are refused and the server goes on', async (t) => {
  const { port, url } = await serve(t, hello);
  assert.match(await raw(port, 'nonsense\r\n\r\n'), /^HTTP\/1\.1 400 Bad Request\r\n/);
  assert.match(
    await raw(port, 'GET /%zz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n'),
    /^HTTP\/1\.1 400/,
  );
  const long = `GET / HTTP/1.1\r\nHost: x\r\nX: ${'y'.repeat(100_000)}\r\n\r\n`;
  assert.match(await raw(port, long), /^HTTP\/1\.1 431 /);
  assert.match(
    await raw(port, `GET ${url}/hello HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`),
    /^HTTP\/1\.1 200 OK\r\n.*\r\n\r\nhi$/s,
  );
  assert.equal((await fetch(`${url}/hello`)).status, 200);
});

test('a handler that fails causes a 500, or ends the connection if it has begun to answer', async (t) => {
  const messages: string[] = [];
  const logger = { ...silentLogger, error: (error: unknown) => void messages.push(String(error)) };
  const { url } = await serve(
    t,
    {
      '/throws': () => {
        throw new Error('early');
      },
      '/rejects': async (_request, response) => {
        response.write('begun');
        throw new Error('late');
      },
    },
    logger,
  );
  const early = await fetch(`${url}/throws`);
  assert.equal(early.status, 500);
  assert.equal(await early.text(), 'Internal Server Error\n');
  await assert.rejects(async () => (await fetch(`${url}/rejects`)).text());
  assert.deepEqual(messages, ['Error: early', 'Error: late']);
});

test('a connection serves several requests, and close ends an idle connection', async (t) => {
  const { server, port } = await serve(t, hello);
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  t.after(() => agent.destroy());
  let connections = 0;
  server.on('connection', () => connections++);
  for (let i = 0; i < 3; i++) {
    const call = request({ host: '127.0.0.1', port, path: '/hello', agent }).end();
    const [response] = (await once(call, 'response')) as [IncomingMessage];
    response.resume();
    await once(response, 'end');
  }
  assert.equal(connections, 1);
  const clock = new FakeClock();
  await server.stop(clock);
  assert.equal(clock.pending, 0);
});

test('close waits for an answer under way, but only for a limited time', async (t) => {
  const begun = Promise.withResolvers<void>();
  const { server, url } = await serve(t, { '/hang': () => begun.resolve() });
  const cutOff = assert.rejects(fetch(`${url}/hang`));
  await begun.promise;
  const clock = new FakeClock();
  const closed = server.stop(clock, 1000);
  await clock.advance(999);
  assert.equal(clock.pending, 1);
  await clock.advance(1);
  await closed;
  await cutOff;
});
