import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, connect, createServer } from 'node:net';
import { type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { eventually } from '../../test/eventually.ts';
import { FakeClock } from '../../test/fake-clock.ts';
import { freePort } from '../../test/free-port.ts';
import { serveHttp } from '../../test/serve-http.ts';
import { Capacity } from '../http/capacity.ts';
import { systemClock } from '../lib/clock.ts';
import { reply } from '../lib/http.ts';
import { silentLogger } from '../obs/log.ts';
import { type BindFailure, type ServiceHealthOptions, ServiceHealthServers } from './service-health.ts';

/** Loopback addresses that only this process uses, so that no other test can take a port. */
const [home, second] = [1, 2].map((n) => `127.${90 + n}.${(process.pid >> 8) & 255}.${process.pid & 255}`);
assert.ok(home && second);

function setup(
  t: TestContext,
  { addresses = [home ?? ''], ...overrides }: Partial<ServiceHealthOptions> & { addresses?: string[] } = {},
) {
  const failures: BindFailure[] = [];
  const servers = new ServiceHealthServers({
    nodeName: 'node-a',
    onBindFailure: (failure) => failures.push(failure),
    capacity: new Capacity(systemClock),
    logger: silentLogger,
    ...overrides,
  });
  servers.listenOn(addresses);
  t.after(() => servers.close());
  return { servers, failures };
}

async function get(port: number, path = '/', host = home) {
  const response = await fetch(`http://${host}:${port}${path}`);
  return { status: response.status, headers: response.headers, body: await response.text() };
}

test('a health-check port returns the count of its service on every path', async (t) => {
  const { servers } = setup(t);
  const port = await freePort(home);
  await servers.sync(new Map([['shop/front', port]]), new Map([['shop/front', 2]]));
  const answer = await get(port, '/any/path?x=1');
  assert.equal(answer.status, 200);
  assert.equal(
    answer.body,
    `{
	"service": {
		"namespace": "shop",
		"name": "front"
	},
	"localEndpoints": 2,
	"serviceProxyHealthy": true
}`,
  );
  assert.equal(answer.headers.get('content-type'), 'application/json');
  assert.equal(answer.headers.get('x-content-type-options'), 'nosniff');
  assert.equal(answer.headers.get('x-load-balancing-endpoint-weight'), '2');
  const posted = await fetch(`http://${home}:${port}/`, { method: 'POST', body: 'x' });
  assert.equal(posted.status, 200);
});

test('no endpoints or an unhealthy proxy is 503; a missing count is 0', async (t) => {
  const proxy = { healthy: true };
  const { servers } = setup(t, { proxyHealthy: () => proxy.healthy });
  const port = await freePort(home);
  const ports = new Map([['shop/front', port]]);
  await servers.sync(ports, new Map());
  const empty = await get(port);
  assert.equal(empty.status, 503);
  assert.equal(empty.headers.get('x-load-balancing-endpoint-weight'), '0');
  assert.match(empty.body, /"localEndpoints": 0,\n\t"serviceProxyHealthy": true\n/);
  await servers.sync(ports, new Map([['shop/front', 1]]));
  assert.equal((await get(port)).status, 200);
  proxy.healthy = false;
  const sick = await get(port);
  assert.equal(sick.status, 503);
  assert.equal(sick.headers.get('x-load-balancing-endpoint-weight'), '1');
  assert.match(sick.body, /"serviceProxyHealthy": false/);
});

test('unchanged health-check ports keep their connections, removed ones close them at once', async (t) => {
  const { servers, failures } = setup(t);
  const [a, b, c] = [await freePort(home), await freePort(home), await freePort(home)];
  await servers.sync(
    new Map([
      ['n/keep', a],
      ['n/gone', b],
    ]),
    new Map(),
  );
  const kept = connect(a, home);
  const ended = connect(b, home);
  await Promise.all([once(kept, 'connect'), once(ended, 'connect')]);
  // Wait until both are known to the server as connections.
  for (const socket of [kept, ended]) {
    socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
    await once(socket, 'data');
  }
  const closed = once(ended, 'close');
  await servers.sync(
    new Map([
      ['n/keep', a],
      ['n/new', c],
    ]),
    new Map([['n/new', 1]]),
  );
  await closed;
  await assert.rejects(get(b));
  assert.equal((await get(c)).status, 200);
  kept.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
  await once(kept, 'data');
  kept.destroy();
  assert.deepEqual(failures, []);
});

test('new addresses open every health-check port there, the same addresses keep their connections', async (t) => {
  const { servers, failures } = setup(t, { addresses: ['0.0.0.0'] });
  const port = await freePort(home);
  const ports = new Map([['n/x', port]]);
  const counts = new Map([['n/x', 1]]);
  await servers.sync(ports, counts);
  const kept = connect(port, second);
  await once(kept, 'connect');
  kept.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
  await once(kept, 'data');
  servers.listenOn(['0.0.0.0']);
  await servers.sync(ports, counts);
  kept.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
  await once(kept, 'data');
  kept.destroy();
  servers.listenOn([home ?? '']);
  assert.equal((await get(port, '/', second)).status, 200, 'until the next sync');
  await servers.sync(ports, counts);
  assert.equal((await get(port)).status, 200);
  await assert.rejects(get(port, '/', second));
  assert.deepEqual(failures, []);
});

test('two services can swap their health-check ports in one sync', async (t) => {
  const { servers, failures } = setup(t);
  const [a, b] = [await freePort(home), await freePort(home)];
  const counts = new Map([
    ['n/x', 1],
    ['n/y', 2],
  ]);
  await servers.sync(
    new Map([
      ['n/x', a],
      ['n/y', b],
    ]),
    counts,
  );
  await servers.sync(
    new Map([
      ['n/x', b],
      ['n/y', a],
    ]),
    counts,
  );
  assert.deepEqual(failures, []);
  assert.match((await get(a)).body, /"name": "y"/);
  assert.match((await get(b)).body, /"name": "x"/);
});

test('a health-check port in use is reported and tried again at the next sync', async (t) => {
  const { servers, failures } = setup(t, { addresses: [second ?? '', home ?? ''] });
  const holder = createServer().listen(0, home);
  t.after(() => holder.close());
  await once(holder, 'listening');
  const { port } = holder.address() as AddressInfo;
  const ports = new Map([['shop/front', port]]);
  const counts = new Map([['shop/front', 1]]);
  await servers.sync(ports, counts);
  await servers.sync(ports, counts);
  assert.equal(failures.length, 2);
  assert.deepEqual({ ...failures[0], note: '' }, { namespace: 'shop', name: 'front', port, note: '' });
  assert.equal(
    failures[0]?.note,
    `node node-a failed to start healthcheck "shop/front" on port ${port}: ` +
      `listen tcp ${home}:${port}: bind: address already in use`,
  );
  await assert.rejects(get(port, '/', second), 'the address that could be bound was closed again');
  await new Promise((resolve) => holder.close(resolve));
  await servers.sync(ports, counts);
  assert.equal(failures.length, 2);
  for (const host of [home, second]) assert.equal((await get(port, '/', host)).status, 200);
});

test('both families listen on the same port and count separately', async (t) => {
  const v4 = setup(t, { addresses: ['0.0.0.0'] });
  const v6 = setup(t, { addresses: ['::'] });
  const port = await freePort('::');
  const ports = new Map([['n/x', port]]);
  await v4.servers.sync(ports, new Map([['n/x', 1]]));
  await v6.servers.sync(ports, new Map([['n/x', 0]]));
  assert.deepEqual([v4.failures, v6.failures], [[], []]);
  assert.equal((await get(port, '/', '127.0.0.1')).status, 200);
  assert.equal((await get(port, '/', '[::1]')).status, 503);
});

test('without an address no health-check port is opened and no failure reported', async (t) => {
  const { servers, failures } = setup(t, { addresses: [] });
  const port = await freePort(home);
  await servers.sync(new Map([['n/x', port]]), new Map());
  await assert.rejects(get(port));
  assert.deepEqual(failures, []);
});

test('overlapping syncs end with the ports of the last one', async (t) => {
  const { servers, failures } = setup(t);
  const [a, b] = [await freePort(home), await freePort(home)];
  await Promise.all([
    servers.sync(new Map([['n/x', a]]), new Map()),
    servers.sync(new Map([['n/x', b]]), new Map()),
    servers.sync(new Map([['n/x', a]]), new Map([['n/x', 3]])),
  ]);
  assert.match((await get(a)).body, /"localEndpoints": 3/);
  await assert.rejects(get(b));
  assert.deepEqual(failures, []);
});

test('a load balancer can probe every few seconds on one connection, in HTTP/1.0 and with bare line feeds', async (t) => {
  const { servers } = setup(t);
  const port = await freePort(home);
  await servers.sync(new Map([['n/x', port]]), new Map([['n/x', 1]]));
  const kept = connect(port, home).setEncoding('latin1');
  t.after(() => kept.destroy());
  const ask = async () => {
    kept.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
    return String((await once(kept, 'data', { signal: AbortSignal.timeout(5_000) }))[0]);
  };
  assert.match(await ask(), /^HTTP\/1\.1 200 OK\r\n/);
  // Longer than Node keeps an idle connection by default.
  await sleep(7_000);
  assert.match(await ask(), /^HTTP\/1\.1 200 OK\r\n/);
  const old = connect(port, home).setEncoding('latin1');
  old.write('OPTIONS / HTTP/1.0\n\n');
  assert.match(String((await once(old, 'data'))[0]), /^HTTP\/1\.0 200 OK\r\n/);
});

test('health-check ports share their bounds with all other ports', async (t) => {
  // Its clock stands still, so that nobody waits for too long.
  const capacity = new Capacity(new FakeClock());
  const { servers } = setup(t, { capacity });
  const port = await freePort(home);
  await servers.sync(new Map([['n/x', port]]), new Map([['n/x', 1]]));
  const open = (at: number, host?: string) => {
    const socket = connect(at, host).on('error', () => socket.destroy());
    t.after(() => socket.destroy());
    return socket.resume();
  };
  const silent = open(port, home);
  await once(silent, 'connect');
  const other = await serveHttp(t, (_request, response) => reply(response, 200, {}, 'fine'), capacity);
  for (let i = 0; i < 256; i++) open(other.port, '127.0.0.1');
  await eventually('a silent connection makes room for those of another port', () => silent.closed);
});

test('half a request on a health-check port is ended after a while', async (t) => {
  const clock = new FakeClock();
  const { servers } = setup(t, { capacity: new Capacity(clock) });
  const port = await freePort(home);
  await servers.sync(new Map([['n/x', port]]), new Map([['n/x', 1]]));
  const socket = connect(port, home).on('error', () => socket.destroy());
  t.after(() => socket.destroy());
  socket.write('GET / HTTP/1.1\r\nHo');
  await once(socket, 'connect');
  await eventually('its end', async () => {
    await clock.advance(5_000);
    return socket.closed;
  });
});
