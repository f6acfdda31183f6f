import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import { afterEach, test } from 'node:test';
import { eventually, eventuallyEqual } from '../../test/eventually.ts';
import { Cleanups, echoAs, talk, tcpPeer, UDPClient, udpPeer } from '../../test/userspace/peers.ts';
import { systemClock } from '../lib/clock.ts';
import { loadSockets } from '../native/koffi-sockets.ts';
import { sharedOccupancy } from './admission.ts';
import { ForwarderPool } from './forwarder-pool.ts';
import { limitsFor } from './open-files.ts';
import type { Report } from './reports.ts';
import { ForwarderThread } from './thread.ts';
import type { ThreadSettings } from './thread-main.ts';

const cleanups = new Cleanups();
afterEach(() => cleanups.run());

async function startThread(
  reports: Report[] = [],
  settings: Partial<ThreadSettings> = {},
): Promise<ForwarderThread> {
  const thread = new ForwarderThread({
    sockets: await loadSockets(),
    clock: systemClock,
    settings: {
      limits: limitsFor(2_000),
      dialTimeouts: [250, 500],
      udpIdleMs: 60_000,
      ...settings,
    },
    report: (report) => reports.push(report),
  });
  cleanups.add(() => thread.close());
  return thread;
}

function kill(thread: ForwarderThread): void {
  // An invalid address makes the thread fail.
  const endpoints = [{ ip: 'nowhere', port: 1 }];
  thread.setService('bad', { endpoints, affinitySeconds: 0, choice: 'round-robin' });
  thread.removeService('bad');
}

test('services spread over threads work, and traffic() returns all of them', async () => {
  const pool = new ForwarderPool([await startThread(), await startThread()]);
  const peers = [await tcpPeer(cleanups, echoAs('a')), await tcpPeer(cleanups, echoAs('b'))];
  for (const [i, { ip, port }] of peers.entries()) {
    pool.setService(`s${i}`, { endpoints: [{ ip, port }], affinitySeconds: 0, choice: 'round-robin' });
  }
  const udp = await udpPeer(cleanups, 'u');
  pool.setService('u', { endpoints: [udp], affinitySeconds: 0, choice: 'round-robin' });
  const at = { ip: '127.0.0.1', port: 0 };
  const ports = [
    await pool.listen('l0', { service: 's0', protocol: 'TCP', at }),
    await pool.listen('l1', { service: 's1', protocol: 'TCP', at }),
    await pool.listen('l2', { service: 'u', protocol: 'UDP', at }),
  ] as const;
  assert.equal(await talk({ ip: '127.0.0.1', port: ports[0] }, 'x'), 'a:x');
  assert.equal(await talk({ ip: '127.0.0.1', port: ports[1] }, 'y'), 'b:y');
  const client = await UDPClient.open(cleanups);
  assert.equal(String(await client.ask({ ip: '127.0.0.1', port: ports[2] }, 'z')), 'u:z');
  const traffic = await pool.traffic();
  assert.deepEqual([...traffic.keys()].toSorted(), ['s0', 's1', 'u']);
  assert.equal(traffic.get('s1')?.bytesOut, 3);
  pool.unlisten('l0', true);
  pool.removeService('s0');
  assert.equal((await pool.traffic()).has('s0'), false);
});

test('listeners() covers all threads, and outlook() finds the listener of an address', async () => {
  const pool = new ForwarderPool([await startThread(), await startThread()]);
  const peer = await tcpPeer(cleanups, echoAs('a'));
  const endpoints = [{ ip: peer.ip, port: peer.port }];
  const name = `${peer.ip}:${peer.port}`;
  const settings = { endpoints: [name], affinitySeconds: 60, choice: 'round-robin' } as const;
  const ports: number[] = [];
  for (const [i, ip] of ['127.0.0.1', '0.0.0.0'].entries()) {
    pool.setService(`s${i}`, { ...settings, endpoints });
    ports.push(await pool.listen(`l${i}`, { service: `s${i}`, protocol: 'TCP', at: { ip, port: 0 } }));
  }
  const [here = 0, anywhere = 0] = ports;
  const listeners = {
    l0: { service: 's0', protocol: 'TCP', at: { ip: '127.0.0.1', port: here }, ...settings },
    l1: { service: 's1', protocol: 'TCP', at: { ip: '0.0.0.0', port: anywhere }, ...settings },
  } as const;
  assert.deepEqual(Object.fromEntries(await pool.listeners()), listeners);
  await talk({ ip: '127.0.0.1', port: here }, 'x');
  const ask = (ip: string, port: number, client: string) => pool.outlook('TCP', { ip, port }, client);
  const turns = [{ endpoint: name, open: 0 }];
  const { bound, ...rest } = (await ask('127.0.0.1', here, '127.0.0.1')) ?? {};
  assert.deepEqual(rest, { listener: listeners.l0, turns });
  assert.equal(bound?.endpoint, name);
  assert.deepEqual(await ask('127.0.0.2', anywhere, '127.0.0.1'), {
    listener: listeners.l1,
    turns,
    bound: undefined,
  });
  assert.equal(await ask('127.0.0.2', here, '127.0.0.1'), undefined);
  assert.equal(await ask('::1', anywhere, '::1'), undefined);
  assert.equal(await pool.outlook('UDP', { ip: '127.0.0.1', port: here }, '127.0.0.1'), undefined);
});

test('listen rejects with EADDRINUSE when the address is in use', async () => {
  const thread = await startThread();
  const { ip, port } = await tcpPeer(cleanups, echoAs('a'));
  await assert.rejects(thread.listen('x', { service: 's', protocol: 'TCP', at: { ip, port } }), {
    code: 'EADDRINUSE',
  });
});

test('threads share the limit on open files: a connection to one waits for connections of another', async () => {
  // Two connections, and a listener of each thread.
  const limits = { ...limitsFor(2_000), files: 2 * 2 + 2 };
  const [a, b] = await Promise.all(
    sharedOccupancy(2).map((occupancy) => startThread([], { limits, occupancy })),
  );
  assert.ok(a && b);
  const { ip, port } = await tcpPeer(cleanups, echoAs('a'));
  const service = { endpoints: [{ ip, port }], affinitySeconds: 0, choice: 'round-robin' } as const;
  const at = { ip: '127.0.0.1', port: 0 };
  for (const thread of [a, b]) thread.setService('s', service);
  const listen = (thread: ForwarderThread) => thread.listen('l', { service: 's', protocol: 'TCP', at });
  const [first, second] = [await listen(a), await listen(b)];
  const held = [connect(first, at.ip), connect(first, at.ip)];
  for (const socket of held) {
    cleanups.add(() => socket.destroy());
    await once(socket, 'data');
  }
  const waiting = talk({ ip: at.ip, port: second }, 'late');
  const isDone = await Promise.race([waiting, new Promise((resolve) => setTimeout(resolve, 300, 'waits'))]);
  assert.equal(isDone, 'waits');
  held[0]?.destroy();
  assert.equal(await waiting, 'a:late');
});

test('a thread that fails is replaced, with the same services at the same ports', async () => {
  const reports: Report[] = [];
  const thread = await startThread(reports);
  const { ip, port } = await tcpPeer(cleanups, echoAs('a'));
  thread.setService('s', { endpoints: [{ ip, port }], affinitySeconds: 0, choice: 'round-robin' });
  const at = {
    ip: '127.0.0.1',
    port: await thread.listen('l', { service: 's', protocol: 'TCP', at: { ip, port: 0 } }),
  };
  assert.equal(await talk(at), 'a:');
  kill(thread);
  await eventually('a report', () => reports.length > 0);
  assert.match(reports[0]?.problem ?? '', /starting another/);
  await eventuallyEqual('an answer', () => talk(at).catch((error: Error) => error.message), 'a:');
});

test('a listener whose port is in use when its thread is replaced is reopened when the port is free', async () => {
  const reports: Report[] = [];
  const thread = await startThread(reports);
  const { ip, port } = await tcpPeer(cleanups, echoAs('a'));
  thread.setService('s', { endpoints: [{ ip, port }], affinitySeconds: 0, choice: 'round-robin' });
  const listening = { service: 's', protocol: 'TCP', at: { ip, port: 0 } } as const;
  const at = { ip, port: await thread.listen('l', listening) };
  kill(thread);
  await eventually('a report', () => reports.length > 0);
  const intruder = createServer().listen(at.port, ip);
  cleanups.add(() => intruder.close());
  await once(intruder, 'listening');
  const losses = () => reports.filter(({ problem }) => problem.startsWith('Failed to reopen')).length;
  await eventuallyEqual('a loss', losses, 1);
  intruder.close();
  const answer = () => talk(at).catch((error: Error) => error.message);
  await eventuallyEqual('an answer', answer, 'a:', { withinMs: 10_000 });
  assert.equal(losses(), 1);
});

test('a listener that was closed before it opened is not reopened by a replacement thread', async () => {
  const reports: Report[] = [];
  const thread = await startThread(reports);
  const listening = { service: 's', protocol: 'TCP', at: { ip: '127.0.0.1', port: 0 } } as const;
  const opened = thread.listen('l', listening);
  thread.unlisten('l', true);
  await opened;
  kill(thread);
  await eventually('a report', () => reports.length > 0);
  assert.deepEqual([...(await thread.listeners()).keys()], []);
});

test('a listener that a failing thread did not open is not opened by its replacement', async () => {
  const thread = await startThread();
  const listening = { service: 's', protocol: 'TCP', at: { ip: '127.0.0.1', port: 0 } } as const;
  kill(thread);
  await assert.rejects(thread.listen('l', listening), /thread failed/);
  assert.deepEqual([...(await thread.listeners()).keys()], []);
  assert.ok((await thread.listen('l', listening)) > 0);
});

test('a pool forgets a listener that failed to open', async () => {
  const thread = await startThread();
  const closed: string[] = [];
  const unlisten = thread.unlisten.bind(thread);
  thread.unlisten = (id, endConnections) => {
    closed.push(id);
    unlisten(id, endConnections);
  };
  const pool = new ForwarderPool([thread]);
  const taken = await tcpPeer(cleanups, echoAs('a'));
  const listen = (port: number) =>
    pool.listen('l', { service: 's', protocol: 'TCP', at: { ip: taken.ip, port } });
  await assert.rejects(listen(taken.port), { code: 'EADDRINUSE' });
  pool.unlisten('l', true);
  assert.deepEqual(closed, []);
  await listen(0);
  // A refused second listener with the same id does not make the pool forget the first.
  await assert.rejects(listen(0), /already/);
  pool.unlisten('l', true);
  assert.deepEqual(closed, ['l']);
});
