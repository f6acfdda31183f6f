import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { connect } from 'node:net';
import { afterEach, test } from 'node:test';
import { encodeAddress } from '../../src/forwarder/socket-address.ts';
import { AF_INET, ENOENT, SOCK_DGRAM } from '../../src/native/sockets.ts';
import { eventually } from '../eventually.ts';
import { answering, EngineUnderTest } from './engine-under-test.ts';
import { blackHole, Cleanups, echoAs, fateOf, talk, tcpPeer, UDPClient, udpPeer } from './peers.ts';

const cleanups = new Cleanups();
afterEach(() => cleanups.run());

test('endpoints that hang after accepting do not delay other connections', async () => {
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
  await eventually('all are connected', async () => (await under.traffic()).endpoints.get(name)?.open === 20);
  under.serve([hanging, healthy], 0, 'least-connections');
  const answers = await Promise.all(Array.from({ length: 10 }, () => talk(at, '!')));
  assert.deepEqual(new Set(answers), new Set(['healthy:!']));
});

test('an endpoint that resets connections affects no connections of others', async () => {
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
  await eventually('all are over', async () => (await under.traffic()).open === 0);
});

test('a slow endpoint receives everything', async () => {
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

test('a client that disconnects while endpoints are tried leaves nothing behind', async () => {
  const under = await EngineUnderTest.open(cleanups);
  under.serve([blackHole(under.sockets, cleanups)]);
  const at = await under.listen('TCP');
  const socket = connect(at.port, at.ip);
  await once(socket, 'connect');
  await eventually('it is being tried', async () => (await under.traffic()).open === 1);
  socket.resetAndDestroy();
  await eventually('it is over', async () => (await under.traffic()).open === 0);
});

test('a service works during a flood of datagrams from ten thousand ports', async (context) => {
  const limits = { total: 2_000, perService: 1_000 };
  const under = await EngineUnderTest.open(cleanups, { limits, udpIdleMs: 60_000 });
  under.serve([await udpPeer(cleanups, 'a')]);
  const at = await under.listen('UDP');
  const to = encodeAddress({ ip: at.ip, port: at.port });
  const payload = Buffer.from('flood');
  let sent = 0;
  for (let port = 10_000; port < 60_000 && sent < 10_000; port++) {
    const fd = under.sockets.socket(AF_INET, SOCK_DGRAM);
    // At a separate address, so that every port is another client and few ports are in use.
    if (under.sockets.bind(fd, encodeAddress({ ip: '127.9.9.9', port })) === 0) {
      under.sockets.sendTo(fd, payload, payload.length, to);
      sent++;
    }
    under.sockets.close(fd);
    if (port % 50 === 0) await new Promise((resolve) => setImmediate(resolve));
  }
  assert.equal(sent, 10_000);
  await eventually('nearly all were heard', async () => (await under.traffic()).connections > 9_000);
  const { connections, open } = await under.traffic();
  context.diagnostic(`${sent} ports, ${connections} sessions were made`);
  assert.ok(open <= limits.perService);
  const client = await UDPClient.open(cleanups);
  // The endpoint's receive buffer may still be full; it then loses datagrams.
  const isAnswered = async () => String(await client.ask(at, 'after', 200).catch(String)) === 'a:after';
  await eventually('a new client is answered', isAnswered, { withinMs: 210_000 });
});

test('running out of files is reported, and service resumes when files are available', async () => {
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

test('a connection is served and reported if the kernel does not tell where the client connected to', async () => {
  const under = await EngineUnderTest.open(cleanups, {
    sockets: answering('getOption', () => -ENOENT),
  });
  under.serve([await tcpPeer(cleanups, echoAs('web'))]);
  const at = { ip: '127.0.0.1', port: 0 };
  const kept = { of: '0.0.0.0/0', at: '10.96.0.1' };
  const port = await under.engine.listen('kept', { service: 'web', protocol: 'TCP', at, kept });
  assert.equal(await talk({ ...at, port }, '!'), 'web:!');
  assert.deepEqual(
    under.reports.map(({ detail }) => detail),
    ['web: ENOENT'],
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
