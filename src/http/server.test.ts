import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { after, before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { serveHttp } from '../../test/serve-http.ts';
import { systemClock } from '../lib/clock.ts';
import { reply } from '../lib/http.ts';
import { Capacity } from './capacity.ts';
import { HttpServer } from './server.ts';

const server = new HttpServer(
  (_request, response) => reply(response, 200, { 'X-Weight': '1' }, 'fine'),
  new Capacity(systemClock),
);

before(() => once(server.listen(0, '127.0.0.1'), 'listening'));
after(() => server.close());

function open(): Socket {
  return connect((server.address() as AddressInfo).port, '127.0.0.1').setEncoding('latin1');
}

/** Everything that the server sends until it ends the connection. */
async function untilEnd(socket: Socket): Promise<string> {
  let received = '';
  socket.on('data', (text) => {
    received += text;
  });
  await once(socket, 'end');
  return received;
}

/** What Go 1.26's net/http sends, without the fields of the answer; `Connection: close` where it ends the connection. */
const ok = 'HTTP/1.1 200 OK';
const ok10 = 'HTTP/1.0 200 OK';
const bad = 'HTTP/1.1 400 Bad Request';
const rows: readonly (readonly [request: string, statusLine: string, isKept: boolean])[] = [
  ['GET / HTTP/1.1\r\nHost: x\r\n\r\n', ok, true],
  ['GET / HTTP/1.1\nHost: x\n\n', ok, true],
  ['GET / HTTP/1.1\r\nHost: x\n\r\n', ok, true],
  ['GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n', ok, false],
  ['FOO / HTTP/1.1\r\nHost: x\r\n\r\n', ok, true],
  ['get / HTTP/1.1\r\nHost: x\r\n\r\n', ok, true],
  ['CONNECT x:80 HTTP/1.1\r\nHost: x:80\r\n\r\n', ok, true],
  ['GET http://x/y HTTP/1.1\r\nHost: x\r\n\r\n', ok, true],
  ['GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n', ok, true],
  ['PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc', ok, true],
  ['PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nContent-Length: 3\r\n\r\nabc', ok, true],
  [
    'PUT / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n2;a=b\r\nab\r\n1\r\nc\r\n0\r\nT: u\r\n\r\n',
    ok,
    true,
  ],
  ['PUT / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: CHUNKED\r\nContent-Length: 9\r\n\r\n0\r\n\r\n', ok, true],
  ['PUT / HTTP/1.0\r\nTransfer-Encoding: chunked\r\nConnection: keep-alive\r\n\r\n', ok10, true],
  ['GET / HTTP/1.1\r\nHost: x\r\nA: b\r\n c\r\n\r\n', ok, true],
  ['GET / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\n\r\n', ok, true],
  ['POST / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n', ok, false],
  ['GET / HTTP/1.0\r\n\r\n', ok10, false],
  ['GET / HTTP/1.0\n\n', ok10, false],
  ['OPTIONS / HTTP/1.0\r\n\r\n', ok10, false],
  ['FOO / HTTP/1.0\r\n\r\n', ok10, false],
  ['GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n', ok10, true],
  ['GET /\r\n\r\n', bad, false],
  ['hello\r\n', bad, false],
  ['\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n', bad, false],
  ['GET foo HTTP/1.1\r\nHost: x\r\n\r\n', bad, false],
  ['G(T / HTTP/1.1\r\nHost: x\r\n\r\n', bad, false],
  ['\x16\x03\x01\x00\xa5\x01\x00\n', bad, false],
  ['GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n', bad, false],
  ['GET / HTTP/1.1\r\nHost: x\r\nno colon\r\n\r\n', bad, false],
  ['GET / HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n', bad, false],
  ['GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\n', bad, false],
  ['GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999999999\r\n\r\n', bad, false],
  ['GET / HTTP/1.1\r\nHost: x\r\nContent-Length : 3\r\n\r\n', bad, false],
  ['GET / HTTP/1.1\r\nHost: x\r\nA: b\0c\r\n\r\n', bad, false],
  ['GET / HTTP/1.1\r\n Host: x\r\nHost: x\r\n\r\n', bad, false],
  ['GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n 1\r\n\r\n', bad, false],
  ['GET / HTTP/1.1\r\nHost: a b\r\n\r\n', bad, false],
  ['PUT / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip\r\n\r\n', 'HTTP/1.1 501 Not Implemented', false],
  ['GET / HTTP/1.1\r\n\r\n', `${bad}: missing required Host header`, false],
  ['GET / HTTP/1.1\r\nHost: x\r\nExpect: tea\r\n\r\n', 'HTTP/1.1 417 Expectation Failed', false],
  [
    'GET / HTTP/2.0\r\nHost: x\r\n\r\n',
    'HTTP/1.1 505 HTTP Version Not Supported: unsupported protocol version',
    false,
  ],
  [`GET / HTTP/1.1\r\nA: ${'x'.repeat(70_000)}`, 'HTTP/1.1 431 Request Header Fields Too Large', false],
];

test('requests get the answers that a Go server gives, and connections are kept or ended as it does', async () => {
  for (const [request, statusLine, isKept] of rows) {
    const socket = open();
    const received = untilEnd(socket);
    socket.write(request, 'latin1');
    // The second request is answered only on a connection that was kept.
    socket.write('HEAD / HTTP/1.0\r\n\r\n');
    const text = await received;
    assert.equal(text.split('\r\n', 1)[0], statusLine, JSON.stringify(request.slice(0, 80)));
    const answers = text.match(/HTTP\/1\.\d \d{3} /g)?.length;
    assert.equal(answers, isKept ? 2 : 1, JSON.stringify(request.slice(0, 80)));
    socket.destroy();
  }
});

test('an answer has the given fields, its length and the time, and HEAD gets no body', async () => {
  const socket = open();
  const received = untilEnd(socket);
  socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\nHEAD / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n');
  const text = (await received).replace(/Date: \w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT/g, 'Date: now');
  const head = 'HTTP/1.1 200 OK\r\nX-Weight: 1\r\nDate: now\r\nContent-Length: 4\r\n';
  assert.equal(text, `${head}\r\nfine${head}Connection: close\r\n\r\n`);
});

test('a request that comes byte by byte is answered when it is complete', async () => {
  const socket = open();
  const received = untilEnd(socket);
  for (const byte of 'GET / HTTP/1.0\nA: b\n\n') {
    socket.write(byte);
    await new Promise(setImmediate);
  }
  assert.match(await received, /fine$/);
});

test('a client that goes on sending after the answer to an invalid request is cut off', async () => {
  const socket = open();
  const closed = new Promise((resolve) => socket.on('error', () => socket.destroy()).on('close', resolve));
  socket.write('garbage\n');
  const chunk = 'x'.repeat(64 * 1024);
  const timer = setInterval(() => socket.write(chunk), 1);
  await closed.finally(() => clearInterval(timer));
});

test('a client that sends its end with its request gets an answer that takes a while', async (t) => {
  const { port } = await serveHttp(t, async (_request, response) => {
    await sleep(20);
    reply(response, 200, {}, 'fine');
  });
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true }).setEncoding('latin1');
  const received = untilEnd(socket);
  socket.end('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
  assert.match(await received, /fine$/);
});

test('an answer that goes on is given up when the client sends its end, before or after it begins', async (t) => {
  for (const isEarly of [true, false]) {
    const { promise, resolve } = Promise.withResolvers<void>();
    const { port } = await serveHttp(t, async (_request, response) => {
      response.on('close', resolve);
      if (isEarly) await sleep(20);
      response.writeHead(200, {}).flushHeaders();
    });
    const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
    socket.on('data', () => socket.end()).on('error', () => socket.destroy());
    socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
    if (isEarly) socket.end();
    await promise;
  }
});

test('a client that sends its end before the end of the body is not answered', async (t) => {
  const { promise, resolve } = Promise.withResolvers<string>();
  const { port } = await serveHttp(t, (request) => {
    request.body().catch((error: unknown) => resolve(String(error)));
  });
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true }).on('error', () =>
    socket.destroy(),
  );
  socket.write('PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nhalf');
  setTimeout(() => socket.end(), 20);
  assert.match(await promise, /the client disconnected/);
});
