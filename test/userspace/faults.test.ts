import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { afterEach, test } from 'node:test';
import { raiseOpenFileLimit } from '../../src/forwarder/open-files.ts';
import { encodeAddress } from '../../src/forwarder/socket-address.ts';
import { AF_INET, SOCK_DGRAM } from '../../src/native/sockets.ts';
import { EngineUnderTest } from './engine-under-test.ts';
import { blackHole, Cleanups, echoAs, fateOf, talk, tcpPeer, UDPClient, udpPeer } from './peers.ts';

const cleanups = new Cleanups();
afterEach(() => cleanups.run());

async function until(what: string, condition: () => Promise<boolean>): Promise<void> {
  for (let i = 0; i < 1_000; i++) {
    if (await condition()) return;
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  assert.fail(`never happened: ${what}`);
}

test('endpoints that hang after accepting hold up nobody else', async () => {
  const under = await EngineUnderTest.open(cleanups);
  const hanging = await tcpPeer(cleanups, (socket) => socket.pause());
  const healthy = await tcpPeer(cleanups, echoAs('healthy'));
  under.serve([hanging]);
  const at = await under.listen('TCP');
  for (let i = 0; i < 20; i++) {
    const socket = connect(at.port, at.ip);
    cleanups.add(() => socket.destroy());
    socket.on('error', () => {});
    socket.write('question');
  }
  const name = `${hanging.ip}:${hanging.port}`;
  await until('all are connected', async () => (await under.traffic()).endpoints.get(name)?.open === 20);
  under.serve([hanging, healthy], 0, 'least-connections');
  const answers = await Promise.all(Array.from({ length: 10 }, () => talk(at, '!')));
  assert.deepEqual(new Set(answers), new Set(['healthy:!']));
});

test('endpoints that reset in the middle lose their own connections only', async () => {
  const under = await EngineUnderTest.open(cleanups);
  const resetting = await tcpPeer(cleanups, (socket) => socket.once('data', () => socket.resetAndDestroy()));
  const healthy = await tcpPeer(cleanups, echoAs('healthy'));
  under.serve([resetting, healthy]);
  const at = await under.listen('TCP');
  const fates = await Promise.all(
    Array.from({ length: 40 }, () => talk(at, 'x').catch((error) => error.code)),
  );
  assert.deepEqual(Map.groupBy(fates, (fate) => fate).get('healthy:x')?.length, 20);
  assert.deepEqual(new Set(fates), new Set(['healthy:x', 'ECONNRESET']));
  await until('all are over', async () => (await under.traffic()).open === 0);
});

test('a slow endpoint gets everything, in its own time', async () => {
  const under = await EngineUnderTest.open(cleanups);
  let heard = 0;
  const slow = await tcpPeer(cleanups, (socket) => {
    socket.on('data', (data) => {
      heard += data.length;
      socket.pause();
      setTimeout(() => socket.resume(), 5);
    });
    socket.on('end', () => socket.end('done'));
  });
  under.serve([slow]);
  assert.equal(await talk(await under.listen('TCP'), 'x'.repeat(4_000_000)), 'done');
  assert.equal(heard, 4_000_000);
});

test('a client that goes away while endpoints are tried leaves nothing behind', async () => {
  const under = await EngineUnderTest.open(cleanups);
  under.serve([blackHole(under.sockets, cleanups)]);
  const at = await under.listen('TCP');
  const socket = connect(at.port, at.ip);
  await once(socket, 'connect');
  await until('it is being tried', async () => (await under.traffic()).open === 1);
  socket.resetAndDestroy();
  await until('it is over', async () => (await under.traffic()).open === 0);
});

test('ten thousand idle connections are held, and their end gives everything back', async (context) => {
  const under = await EngineUnderTest.open(cleanups, { limits: { total: 20_000, perService: 20_000 } });
  // Client, both sides of the relay and the endpoint are all in this process.
  const { limit } = raiseOpenFileLimit(under.sockets);
  const count = Math.min(10_000, Math.floor((limit - 1_000) / 400) * 100);
  context.diagnostic(`${count} connections`);
  const peer = await tcpPeer(cleanups, (socket) => socket.pause());
  under.serve([peer]);
  const at = await under.listen('TCP');
  const before = process.memoryUsage().rss;
  const sockets: Socket[] = [];
  for (let i = 0; i < count; i += 100) {
    const batch = Array.from({ length: 100 }, () => connect(at.port, at.ip));
    for (const socket of batch) socket.on('error', () => {});
    await Promise.all(batch.map((socket) => once(socket, 'connect')));
    sockets.push(...batch);
  }
  await until('all are open', async () => (await under.traffic()).open === sockets.length);
  context.diagnostic(
    `${((process.memoryUsage().rss - before) / sockets.length / 1024).toFixed(1)} KiB each, with both ends`,
  );
  for (const socket of sockets) socket.destroy();
  await until('all are over', async () => {
    for (const socket of peer.sockets) socket.destroy();
    return (await under.traffic()).open === 0;
  });
  assert.equal((await under.traffic()).connections, sockets.length);
});

test('a flood of datagrams from ten thousand ports leaves the service working', async (context) => {
  const limits = { total: 2_000, perService: 1_000 };
  const under = await EngineUnderTest.open(cleanups, { limits, udpIdleMs: 60_000 });
  under.serve([await udpPeer(cleanups, 'a')]);
  const at = await under.listen('UDP');
  const to = encodeAddress({ ip: at.ip, port: at.port });
  const payload = Buffer.from('flood');
  for (let i = 0; i < 10_000; i++) {
    const fd = under.sockets.socket(AF_INET, SOCK_DGRAM);
    under.sockets.sendTo(fd, payload, payload.length, to);
    under.sockets.close(fd);
    if (i % 100 === 0) await new Promise((resolve) => setImmediate(resolve));
  }
  const { connections, open } = await under.traffic();
  context.diagnostic(`${connections} sessions were made`);
  assert.ok(connections > 5_000, `${connections} sessions`);
  assert.ok(open <= limits.perService);
  const client = await UDPClient.open(cleanups);
  assert.equal(String(await client.ask(at, 'after')), 'a:after');
});

test('when no more files can be opened, that is told, and service goes on as soon as they can', async () => {
  const script = `
    import { EngineUnderTest } from ${JSON.stringify(new URL('./engine-under-test.ts', import.meta.url).href)};
    import { Cleanups, echoAs, talk, tcpPeer } from ${JSON.stringify(new URL('./peers.ts', import.meta.url).href)};
    import { connect } from 'node:net';
    const cleanups = new Cleanups();
    const under = await EngineUnderTest.open(cleanups);
    const peer = await tcpPeer(cleanups, echoAs('a'));
    under.serve([peer]);
    const at = await under.listen('TCP');
    under.sockets.setOpenFileLimit(80, 80);
    const held = Array.from({ length: 60 }, () => connect(at.port, at.ip).on('error', () => {}));
    await new Promise((resolve) => setTimeout(resolve, 500));
    for (const socket of held) socket.destroy();
    let heard = '';
    for (let i = 0; i < 100 && heard !== 'a:x'; i++) {
      heard = await talk(at, 'x').catch(String);
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    console.log(JSON.stringify({ heard, reports: under.reports }));
    await cleanups.run();
    process.exit(0);
  `;
  const args = ['--input-type=module-typescript', '--no-warnings', '-e', script];
  const { status, stdout, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8', timeout: 30_000 });
  assert.equal(status, 0, stderr);
  const { heard, reports } = JSON.parse(stdout) as { heard: string; reports: { detail: string }[] };
  assert.equal(heard, 'a:x');
  assert.ok(
    reports.some(({ detail }) => /EMFILE|too many open files/.test(detail)),
    stdout,
  );
});

test('connections to a service without endpoints do not pile up', async () => {
  const under = await EngineUnderTest.open(cleanups);
  under.serve([]);
  const at = await under.listen('TCP');
  const fates = await Promise.all(Array.from({ length: 200 }, () => fateOf(at)));
  assert.deepEqual(new Set(fates), new Set(['end']));
  assert.deepEqual([(await under.traffic()).open, (await under.traffic()).unserved], [0, 200]);
});
