import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { afterEach, test } from 'node:test';
import { chosenByTable } from '../../../test/cluster/chosen-by-table.ts';
import { planOf, plansByKey } from '../../../test/cluster/plans.ts';
import { FakeClock } from '../../../test/fake-clock.ts';
import { freePort } from '../../../test/free-port.ts';
import { Cleanups, UDPClient, udpPeer } from '../../../test/userspace/peers.ts';
import { openLocalForwarder } from '../../forwarder/open.ts';
import type { Balance } from '../../model/service-port.ts';
import { silentLogger } from '../../obs/log.ts';
import type { ServicePlan } from '../../plan/service-plan.ts';
import { LoopbackProxy, type LoopbackProxyOptions } from './loopback-proxy.ts';

const closers: (() => void)[] = [];
afterEach(() => {
  for (const close of closers.splice(0)) close();
});

/** A server that says its name and then everything it hears, and ends when the client does. */
async function startEndpoint(name: string): Promise<number> {
  const sockets = new Set<Socket>();
  const server: Server = createServer({ allowHalfOpen: true }, (socket) => {
    sockets.add(socket);
    socket.on('error', () => socket.destroy());
    socket.write(`${name}:`);
    socket.pipe(socket);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  closers.push(() => {
    server.close();
    for (const socket of sockets) socket.destroy();
  });
  return (server.address() as AddressInfo).port;
}

function startProxy(options: Pick<LoopbackProxyOptions, 'openForwarder'> = {}) {
  const clock = new FakeClock();
  const counts = { listeners: 0, failures: 0 };
  let next = 0;
  const proxy = new LoopbackProxy({
    family: 'IPv4',
    metrics: {
      localhostNodePortListeners: { set: (listeners) => void Object.assign(counts, { listeners }), add() {} },
      localhostNodePortListenFailures: { inc: () => void counts.failures++ },
    },
    logger: silentLogger,
    clock,
    // Every choice differs from the one before.
    random: () => (next++ % 2) / 2,
    ...options,
  });
  closers.push(() => proxy.close());
  return { proxy, clock, counts };
}

type Options = {
  balance?: Balance;
  affinitySeconds?: number;
  externalPolicyLocal?: boolean;
  local?: boolean;
};

function planFor(
  nodePort: number,
  targets: readonly number[],
  options: Options = {},
): Map<string, ServicePlan> {
  const { local = false, ...parts } = options;
  const endpoints = targets.map((port) => ({ ip: '127.0.0.1', port, local }));
  return plansByKey(planOf({ clusterIP: '10.96.0.1', nodePort, ...parts }, endpoints));
}

/** All that a connection says when this much was said to it and its sending half closed. */
async function talk(port: number, text = '', sourcePort?: number): Promise<string> {
  const socket = connect({
    port,
    host: '127.0.0.1',
    ...(sourcePort !== undefined && { localPort: sourcePort }),
  });
  socket.end(text);
  let heard = '';
  for await (const chunk of socket.setEncoding('utf8')) heard += chunk;
  return heard;
}

test('passes both directions, and a half that is closed stays closed', async () => {
  const { proxy, counts } = startProxy();
  const nodePort = await freePort();
  await proxy.update({ plans: planFor(nodePort, [await startEndpoint('a')]), changed: 'all' });
  assert.equal(counts.listeners, 1);
  assert.equal(await talk(nodePort, 'hello'), 'a:hello');
});

test('a forwarder that cannot be opened fails no sync, and is tried again with the next', async () => {
  let attempts = 0;
  const { proxy, counts } = startProxy({
    openForwarder: async (options) => {
      if (++attempts === 1) throw new Error('EMFILE');
      return openLocalForwarder(options);
    },
  });
  const nodePort = await freePort();
  const plans = planFor(nodePort, [await startEndpoint('a')]);
  await proxy.update({ plans, changed: 'all' });
  assert.deepEqual(counts, { listeners: 0, failures: 1 });
  await proxy.update({ plans, changed: new Set() });
  assert.equal(counts.listeners, 1);
  assert.equal(await talk(nodePort, 'hello'), 'a:hello');
});

test('chooses by a hash where the Service asks for one, as the kernel does for other addresses', async () => {
  const { proxy } = startProxy();
  const nodePort = await freePort();
  const ports = { a: await startEndpoint('a'), b: await startEndpoint('b'), c: await startEndpoint('c') };
  const ids = { a: `127.0.0.1:${ports.a}`, b: `127.0.0.1:${ports.b}`, c: `127.0.0.1:${ports.c}` };
  const serve = (options: Options) =>
    proxy.update({ plans: planFor(nodePort, Object.values(ports), options), changed: 'all' });
  await serve({ balance: 'hash' });
  for (let i = 0; i < 20; i++) {
    const sourcePort = await freePort();
    const expected = chosenByTable(ids, '127.0.0.1', sourcePort);
    assert.equal(await talk(nodePort, '', sourcePort), `${expected}:`, `port ${sourcePort}`);
  }
  await serve({ balance: 'hash-client' });
  for (let i = 0; i < 5; i++) assert.equal(await talk(nodePort), `${chosenByTable(ids, '127.0.0.1')}:`);
  await serve({ balance: 'default' });
  assert.notEqual(await talk(nodePort), await talk(nodePort));
});

test('spreads connections, and with affinity does not while the time lasts', async () => {
  const { proxy, clock } = startProxy();
  const nodePort = await freePort();
  const targets = [await startEndpoint('a'), await startEndpoint('b')];
  await proxy.update({ plans: planFor(nodePort, targets), changed: 'all' });
  assert.notEqual(await talk(nodePort), await talk(nodePort));
  await proxy.update({ plans: planFor(nodePort, targets, { affinitySeconds: 60 }), changed: 'all' });
  const pinned = await talk(nodePort);
  await clock.advance(50_000);
  assert.equal(await talk(nodePort), pinned);
  await clock.advance(50_000);
  assert.equal(await talk(nodePort), pinned);
  await clock.advance(61_000);
  const later = [await talk(nodePort), await talk(nodePort)];
  assert.equal(later[0], later[1]);
  const only = pinned === 'a:' ? [targets[1] ?? 0] : [targets[0] ?? 0];
  await proxy.update({ plans: planFor(nodePort, only, { affinitySeconds: 60 }), changed: 'all' });
  assert.notEqual(await talk(nodePort), pinned);
});

test('a service that goes takes its listener and open connections along; a new list leaves them alone', async () => {
  const { proxy, counts } = startProxy();
  const nodePort = await freePort();
  await proxy.update({ plans: planFor(nodePort, [await startEndpoint('a')]), changed: 'all' });
  const socket = connect(nodePort, '127.0.0.1');
  socket.on('error', () => {});
  assert.equal(String((await once(socket, 'data'))[0]), 'a:');
  await proxy.update({ plans: planFor(nodePort, [await startEndpoint('b')]), changed: 'all' });
  socket.write('still');
  assert.equal(String((await once(socket, 'data'))[0]), 'still');
  await proxy.update({ plans: new Map(), changed: new Set(['default/web/TCP']) });
  await once(socket, 'close');
  assert.equal(counts.listeners, 0);
  await assert.rejects(talk(nodePort), /ECONNREFUSED/);
});

test('policy Local without a local endpoint listens to nobody', async () => {
  const { proxy, counts } = startProxy();
  const nodePort = await freePort();
  const target = await startEndpoint('a');
  await proxy.update({ plans: planFor(nodePort, [target], { externalPolicyLocal: true }), changed: 'all' });
  assert.equal(counts.listeners, 0);
  const here = planFor(nodePort, [target], { externalPolicyLocal: true, local: true });
  await proxy.update({ plans: here, changed: 'all' });
  assert.equal(await talk(nodePort), 'a:');
});

test('an endpoint that does not answer costs the client its connection', async () => {
  const { proxy } = startProxy();
  const nodePort = await freePort();
  await proxy.update({ plans: planFor(nodePort, [await freePort()]), changed: 'all' });
  const socket = connect(nodePort, '127.0.0.1');
  socket.on('error', () => {});
  await once(socket, 'close');
});

test('a port that is taken is counted and tried again with the next sync', async () => {
  const { proxy, counts } = startProxy();
  const nodePort = await freePort();
  const squatter = createServer().listen(nodePort, '127.0.0.1');
  await once(squatter, 'listening');
  const plans = planFor(nodePort, [await startEndpoint('a')]);
  await proxy.update({ plans, changed: 'all' });
  assert.deepEqual(counts, { listeners: 0, failures: 1 });
  squatter.close();
  await once(squatter, 'close');
  await proxy.update({ plans, changed: new Set() });
  assert.deepEqual(counts, { listeners: 1, failures: 1 });
});

test('serves UDP as well', async () => {
  const { proxy, counts } = startProxy();
  const cleanups = new Cleanups();
  closers.push(() => void cleanups.run());
  const nodePort = await freePort();
  const peer = await udpPeer(cleanups, 'a');
  const plan = planOf({ protocol: 'UDP', clusterIP: '10.96.0.1', nodePort }, [
    { ip: peer.ip, port: peer.port },
  ]);
  await proxy.update({ plans: plansByKey(plan), changed: 'all' });
  assert.equal(counts.listeners, 1);
  const client = await UDPClient.open(cleanups);
  assert.equal(String(await client.ask({ ip: '127.0.0.1', port: nodePort }, 'x')), 'a:x');
});
