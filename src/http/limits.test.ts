import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { type TestContext, test } from 'node:test';
import { eventually } from '../../test/eventually.ts';
import { FakeClock } from '../../test/fake-clock.ts';
import { serveHttp } from '../../test/serve-http.ts';
import { reply } from '../lib/http.ts';
import { Capacity } from './capacity.ts';
import type { HttpRequest } from './exchange.ts';
import type { HttpResponse } from './response.ts';
import type { HttpServer } from './server.ts';

const get = 'GET / HTTP/1.1\r\nHost: x\r\n\r\n';

function open(t: TestContext, port: number): Socket {
  const socket = connect(port, '127.0.0.1').on('error', () => socket.destroy());
  t.after(() => socket.destroy());
  return socket;
}

function countConnections(server: HttpServer): Promise<number> {
  return new Promise((resolve, reject) =>
    server.getConnections((error, count) => (error ? reject(error) : resolve(count))),
  );
}

/** Counts what a socket receives. */
function received(socket: Socket): { bytes: number; text: string } {
  const so = { bytes: 0, text: '' };
  socket.on('data', (data) => {
    so.bytes += data.length;
    so.text = String(data);
  });
  return so;
}

test('a client that sends 200 requests at once and does not read has one answer in progress', async (t) => {
  const body = 'x'.repeat(1 << 18);
  let begun = 0;
  let inProgress = 0;
  let most = 0;
  const { port, url } = await serveHttp(t, (request, response) => {
    if (request.url === '/other') return reply(response, 200, {}, 'fine');
    begun++;
    most = Math.max(most, ++inProgress);
    response.on('close', () => inProgress--);
    reply(response, 200, {}, body);
  });
  const socket = open(t, port).pause();
  socket.write(get.repeat(200));
  await eventually('the first answer', () => begun > 0);
  assert.equal(await (await fetch(`${url}/other`)).text(), 'fine');
  assert.ok(begun < 100, `${begun} answers were made and none was read`);
  // All are answered when the client reads.
  const got = received(socket.resume());
  await eventually('all answers', () => got.bytes > 200 * body.length);
  assert.deepEqual([begun, most], [200, 1]);
});

test('a client that asks one question does not wait for others that sent many requests on each connection', async (t) => {
  const clock = new FakeClock();
  const served: string[] = [];
  const { server, port } = await serveHttp(
    t,
    (request, response) => {
      served.push(request.url);
      // An answer that is made later costs so much that the others wait.
      setImmediate(() => reply(response, 200, {}, 'fine'));
    },
    new Capacity(clock),
  );
  let isAsked = false;
  server.on('connection', (socket: Socket) =>
    socket.on('data', (bytes) => {
      if (String(bytes).includes('/polite')) isAsked = true;
    }),
  );
  const flood = Array.from({ length: 50 }, (_, i) => `/flood/${i}`);
  for (const path of flood) open(t, port).resume().write(get.replace('/', path).repeat(100));
  await eventually('the second answer on each connection', async () => {
    await clock.advance(20);
    return flood.every((path) => served.filter((url) => url === path).length > 1);
  });
  open(t, port).write(get.replace('/', '/polite'));
  await eventually('the question has arrived', () => isAsked);
  const before = served.length;
  for (let waited = 0; waited < 10_000 && !served.includes('/polite'); waited += 2) await clock.advance(2);
  assert.ok(served.includes('/polite'));
  assert.ok(served.indexOf('/polite') - before < 5, `after ${served.indexOf('/polite') - before} others`);
});

test('a client gets its answer while others hold many connections and send nothing, or half a request', async (t) => {
  const { server, port, url } = await serveHttp(t, (_request, response) => reply(response, 200, {}, 'fine'));
  const held = Array.from({ length: 600 }, () => open(t, port));
  for (const socket of held) socket.write('GET / HT');
  await Promise.all(held.map((socket) => (socket.connecting ? once(socket, 'connect') : undefined)));
  assert.equal(await (await fetch(url)).text(), 'fine');
  await eventually('many are closed', async () => (await countConnections(server)) < 300);
  assert.equal(await (await fetch(url)).text(), 'fine');
});

test('an answer that goes on is not cut for new connections, those that are silent are', async (t) => {
  const streams: HttpResponse[] = [];
  const { server, port } = await serveHttp(t, (_request, response) => {
    streams.push(response);
    response.writeHead(200, {}).flushHeaders();
  });
  const reader = open(t, port);
  const got = received(reader);
  reader.write(get);
  await eventually('the head', () => got.text.includes('200 OK'));
  for (let i = 0; i < 600; i++) open(t, port);
  await eventually('the server takes them', async () => (await countConnections(server)) > 200);
  await once(open(t, port), 'connect');
  streams[0]?.write('still there');
  await eventually('the line', () => got.text.includes('still there'));
});

const post = 'POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n';
for (const [name, sent, seconds] of [
  ['half a request', 'GET / HTTP/1.1\r\n', 15],
  ['half a request after a whole one', `${get}GET / HTTP/1.1\r\n`, 15],
  ['half a body', `${post}half`, 15],
  ['a body without another request', `${post}123456789`, 150],
] as const) {
  test(`a connection is kept for ${seconds} seconds after ${name}, however slowly bytes come`, async (t) => {
    const clock = new FakeClock();
    const { server, port } = await serveHttp(
      t,
      (_request, response) => reply(response, 200, {}, 'fine'),
      new Capacity(clock),
    );
    const socket = open(t, port);
    const got = received(socket);
    socket.write(sent);
    await eventually('the connection', async () => (await countConnections(server)) === 1);
    if (sent.startsWith(get) || sent.startsWith(post))
      await eventually('the answer', () => got.text.endsWith('fine'));
    await clock.advance((seconds - 6) * 1000);
    assert.equal(await countConnections(server), 1);
    if (seconds === 15) socket.write('x');
    await clock.advance(12_000);
    await eventually('the end of the connection', () => socket.closed);
    await eventually('no timer is left', () => clock.pending === 0);
  });
}

test('a client that does not read its answer for 30 seconds is cut off', async (t) => {
  const clock = new FakeClock();
  const ends: boolean[] = [];
  const { port } = await serveHttp(
    t,
    (_request, response) => {
      response.on('close', () => ends.push(response.writableFinished));
      reply(response, 200, {}, Buffer.alloc(32 << 20));
    },
    new Capacity(clock),
  );
  open(t, port).pause().write(get);
  const reader = open(t, port);
  const got = received(reader);
  reader.write(get);
  await eventually('the reader has all', async () => {
    await clock.advance(1);
    return got.bytes > 32 << 20;
  });
  await eventually('the other one is cut off', async () => {
    await clock.advance(10_000);
    return ends.length === 2;
  });
  assert.deepEqual(ends, [true, false]);
});

test('answers that many clients do not read take bounded memory', async (t) => {
  const clock = new FakeClock();
  let begun = 0;
  let cut = 0;
  const { port } = await serveHttp(
    t,
    (_request, response) => {
      begun++;
      response.on('close', () => {
        if (!response.writableFinished) cut++;
      });
      reply(response, 200, {}, Buffer.alloc(16 << 20));
    },
    new Capacity(clock),
  );
  for (let asked = 1; asked <= 10; asked++) {
    open(t, port).pause().write(get);
    await eventually('the answer begins', async () => {
      await clock.advance(1);
      return begun === asked;
    });
    // The next client comes when this one has not read for a while.
    await clock.advance(1_500);
  }
  await eventually('slow readers are cut off', () => cut >= 8);
});

test('answers that are made later are counted as what a page of /metrics costs', async (t) => {
  const clock = new FakeClock();
  let begun = 0;
  const { port } = await serveHttp(
    t,
    (_request, response) => {
      begun++;
      setImmediate(() => reply(response, 200, {}, 'fine'));
    },
    new Capacity(clock),
  );
  open(t, port).resume().write(get.repeat(400));
  await eventually('the first answer', () => begun > 0);
  for (let elapsed = 0; elapsed < 1000; elapsed += 2) await clock.advance(2);
  assert.ok(begun > 10 && begun < 75, `${begun} answers within a second`);
});

test('a client on this machine is served before many elsewhere that came earlier', async (t) => {
  const clock = new FakeClock();
  const capacity = new Capacity(clock);
  const served: (string | undefined)[] = [];
  const answer = (request: HttpRequest, response: HttpResponse) => {
    served.push(request.remoteAddress);
    reply(response, 200, {}, 'fine');
  };
  const { server, port } = await serveHttp(t, answer, capacity);
  // Everybody has to wait.
  capacity.turns.charge(100);
  const ask = (localAddress: string) => {
    const socket = connect({ port, host: '127.0.0.1', localAddress }).on('error', () => socket.destroy());
    t.after(() => socket.destroy());
    socket.write(get);
  };
  for (let i = 0; i < 100; i++) ask('127.0.0.2');
  await eventually('all connections', async () => (await countConnections(server)) === 100);
  ask('127.0.0.1');
  await eventually('one more connection', async () => (await countConnections(server)) === 101);
  await eventually('all answers', async () => {
    await clock.advance(20);
    return served.length === 101;
  });
  assert.ok(served.indexOf('127.0.0.1') < 50, `after ${served.indexOf('127.0.0.1')} others`);
});
