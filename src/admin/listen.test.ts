import assert from 'node:assert/strict';
import { EventEmitter, on, once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { networkInterfaces } from 'node:os';
import { type TestContext, test } from 'node:test';
import { FakeClock } from '../../test/fake-clock.ts';
import { Capacity } from '../http/capacity.ts';
import { HttpServer } from '../http/server.ts';
import { systemClock } from '../lib/clock.ts';
import { silentLogger } from '../obs/log.ts';
import { listenTargets, parseListenAddress, type ServeOptions, serveWithRetry } from './listen.ts';

function start(t: TestContext, overrides: Partial<ServeOptions>) {
  const clock = new FakeClock();
  const failures: Error[] = [];
  const listening = Promise.withResolvers<number>();
  const events = new EventEmitter();
  const logged = on(events, 'failure')[Symbol.asyncIterator]();
  const serving = serveWithRetry({
    name: 'proxy healthz',
    address: '127.0.0.1:0',
    hardFail: false,
    onHardFail: (error) => {
      failures.push(error);
      events.emit('failure', error);
    },
    handler: (_request, response) => response.end('ok'),
    capacity: new Capacity(systemClock),
    clock,
    logger: {
      ...silentLogger,
      error: (error) => void events.emit('failure', error),
    },
    onListening: listening.resolve,
    ...overrides,
  });
  t.after(() => serving.close());
  const nextFailure = async (): Promise<Error> => (await logged.next()).value?.[0];
  return { serving, clock, failures, listening: listening.promise, nextFailure };
}

/** A socket that holds a port of 127.0.0.1. */
async function occupy(t: TestContext) {
  const holder = createServer().listen(0, '127.0.0.1');
  await once(holder, 'listening');
  const release = () => new Promise<void>((resolve) => holder.close(() => resolve()));
  t.after(release);
  return { port: (holder.address() as AddressInfo).port, release };
}

const hasIPv6 = Object.values(networkInterfaces()).some((all) =>
  all?.some(({ family }) => family === 'IPv6'),
);

test('listen addresses are parsed as in Kubernetes', () => {
  assert.deepEqual(parseListenAddress('127.0.0.1:10249'), { host: '127.0.0.1', port: 10249 });
  assert.deepEqual(parseListenAddress('[::1]:10249'), { host: '::1', port: 10249 });
  assert.deepEqual(parseListenAddress('010.0.0.01:1'), { host: '10.0.0.1', port: 1 });
  assert.deepEqual(parseListenAddress('0000.000.0.00:0010249'), { host: '0.0.0.0', port: 10249 });
  assert.deepEqual(parseListenAddress('127.0.0.1:+080'), { host: '127.0.0.1', port: 80 });
  assert.deepEqual(parseListenAddress('[00001::00aB:0]:1'), { host: '1::aB:0', port: 1 });
  assert.deepEqual(parseListenAddress('[::ffff:010.0.0.1]:1'), { host: '::ffff:10.0.0.1', port: 1 });
  assert.deepEqual(parseListenAddress('[00000::0000]:1'), { host: '0::0', port: 1 });
  for (const bad of [
    '',
    '127.0.0.1',
    'localhost:1',
    '::1:1',
    '[::1]',
    '1.2.3.4:x',
    '1.2.3.4:65536',
    '1.2.3.4:00065536',
    '[10000::00fffff]:1',
    '1.2.3:1',
  ]) {
    assert.throws(() => parseListenAddress(bad), /is not an IP:port/, bad);
  }
});

test('a wildcard of either family means both, with IPv4 as the fallback', () => {
  const both = [{ port: 1 }, { host: '::', port: 1 }, { host: '0.0.0.0', port: 1 }];
  assert.deepEqual(listenTargets({ host: '0.0.0.0', port: 1 }), both);
  assert.deepEqual(listenTargets({ host: '::', port: 1 }), both);
  assert.deepEqual(listenTargets({ host: '0:0:0:0:0:0:0:0', port: 1 }), both);
  assert.deepEqual(listenTargets({ host: '::1', port: 1 }), [{ host: '::1', port: 1 }]);
  assert.deepEqual(listenTargets({ host: '10.0.0.1', port: 1 }).length, 1);
});

for (const address of ['0.0.0.0:0', '[::]:0']) {
  test(`${address} is reached over both families`, async (t) => {
    const port = await start(t, { address }).listening;
    assert.equal(await (await fetch(`http://127.0.0.1:${port}/`)).text(), 'ok');
    if (hasIPv6) assert.equal(await (await fetch(`http://[::1]:${port}/`)).text(), 'ok');
  });
}

test('a port in use is tried again every five seconds', async (t) => {
  const holder = await occupy(t);
  let attempts = 0;
  const makeServer: ServeOptions['makeServer'] = (...args) => {
    attempts++;
    return new HttpServer(...args);
  };
  const address = `127.0.0.1:${holder.port}`;
  const { serving, clock, failures, listening, nextFailure } = start(t, { address, makeServer });
  for (let round = 1; round <= 3; round++) {
    const error = await nextFailure();
    assert.match(
      error.message,
      /^failed to start proxy healthz on 127\.0\.0\.1:\d+: listen tcp .* bind: address already in use$/,
    );
    await clock.advance(4999);
    assert.equal(attempts, round, 'not before five seconds have passed');
    assert.equal(serving.port, undefined);
    if (round === 3) await holder.release();
    await clock.advance(1);
    assert.equal(attempts, round + 1);
  }
  assert.equal(await listening, holder.port);
  assert.equal(serving.port, holder.port);
  assert.deepEqual(failures, []);
});

test('with hardFail the first failure is reported once and not retried', async (t) => {
  const holder = await occupy(t);
  const { clock, failures, nextFailure } = start(t, { address: `127.0.0.1:${holder.port}`, hardFail: true });
  await nextFailure();
  await clock.advance(60_000);
  assert.equal(failures.length, 1);
  assert.equal(clock.pending, 0);
});

test('a listener that fails while serving is reopened', async (t) => {
  const servers: HttpServer[] = [];
  const makeServer: ServeOptions['makeServer'] = (...args) => {
    const server = new HttpServer(...args);
    servers.push(server);
    return server;
  };
  const { serving, clock, listening, nextFailure } = start(t, { makeServer });
  await listening;
  servers[0]?.emit('error', new Error('accept: the descriptor went away'));
  assert.match((await nextFailure()).message, /descriptor went away/);
  assert.equal(serving.port, undefined);
  await clock.advance(5000);
  assert.equal(servers.length, 2);
  if (!servers[1]?.listening) await once(servers[1] as HttpServer, 'listening');
  assert.equal(await (await fetch(`http://127.0.0.1:${serving.port}/`)).text(), 'ok');
});

test('without IPv6 in the kernel a wildcard listens on IPv4', async (t) => {
  const tried: unknown[] = [];
  const makeServer: ServeOptions['makeServer'] = (...args) => {
    const server = new HttpServer(...args);
    const listen = server.listen.bind(server);
    t.mock.method(server, 'listen', (target: { host: string }) => {
      tried.push(target.host);
      if (target.host === '0.0.0.0') return listen({ ...target, host: '127.0.0.1' });
      queueMicrotask(() => server.emit('error', Object.assign(new Error('no'), { code: 'EAFNOSUPPORT' })));
      return server;
    });
    return server;
  };
  const port = await start(t, { address: '[::]:0', makeServer }).listening;
  assert.equal((await fetch(`http://127.0.0.1:${port}/`)).status, 200);
  assert.deepEqual(tried, [undefined, '::', '0.0.0.0']);
});

test('a wildcard whose port is in use in IPv6 does not serve IPv4 alone', {
  skip: !hasIPv6 && 'no IPv6 here',
}, async (t) => {
  const holder = createServer().listen({ port: 0, host: '::', ipv6Only: true });
  await once(holder, 'listening');
  t.after(() => holder.close());
  const { port } = holder.address() as AddressInfo;
  const { serving, nextFailure } = start(t, { address: `0.0.0.0:${port}` });
  assert.match((await nextFailure()).message, /bind: address already in use$/);
  assert.equal(serving.port, undefined);
});

test('close during the pause before a retry stops retrying', async (t) => {
  const holder = await occupy(t);
  const { serving, clock, nextFailure } = start(t, { address: `127.0.0.1:${holder.port}` });
  await nextFailure();
  await serving.close();
  assert.equal(clock.pending, 0);
});

test('close right after the start leaves no listener', async (t) => {
  const { serving } = start(t, {});
  await serving.close();
  assert.equal(serving.port, undefined);
});

test('an invalid listen address throws at once', (t) => {
  assert.throws(() => start(t, { address: 'metrics:80' }), /"metrics:80" is not an IP:port/);
});
