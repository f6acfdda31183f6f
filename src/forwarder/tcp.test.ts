import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { connect } from 'node:net';
import { afterEach, test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { eventually, eventuallyEqual } from '../../test/eventually.ts';
import { EngineUnderTest } from '../../test/userspace/engine-under-test.ts';
import {
  blackHole,
  Cleanups,
  echoAs,
  fateOf,
  freePort,
  type Peer,
  talk,
  tcpPeer,
} from '../../test/userspace/peers.ts';
import { loadSockets } from '../native/koffi-sockets.ts';
import { AF_INET, SOCK_STREAM, type Sockets } from '../native/sockets.ts';
import { Engine } from './engine.ts';
import { LoopClock } from './loop-clock.ts';
import { limitsFor } from './open-files.ts';
import { decodeAddress, encodeAddress, maxAddressBytes } from './socket-address.ts';

const cleanups = new Cleanups();
afterEach(() => cleanups.run());

test('connections go to endpoints in turn and carry both directions, in both families', async () => {
  for (const ip of ['127.0.0.1', '::1']) {
    const under = await EngineUnderTest.open(cleanups);
    under.serve([await tcpPeer(cleanups, echoAs('a'), ip), await tcpPeer(cleanups, echoAs('b'), ip)]);
    const at = await under.listen('TCP', ip);
    const heard = [
      await talk(at, 'one'),
      await talk(at, 'two'),
      await talk(at, 'three'),
      await talk(at, 'four'),
    ];
    assert.deepEqual(
      heard.map((text) => text.slice(2)),
      ['one', 'two', 'three', 'four'],
    );
    assert.equal(heard[0]?.[0], heard[2]?.[0]);
    assert.notEqual(heard[0]?.[0], heard[1]?.[0]);
  }
});

test('an answer that comes after the client closed its sending half arrives completely', async () => {
  const answer = randomBytes(3_000_000).toString('hex');
  const under = await EngineUnderTest.open(cleanups);
  const peer = await tcpPeer(cleanups, (socket) => {
    socket.resume();
    socket.on('end', () => socket.end(answer));
  });
  under.serve([peer]);
  assert.equal(await talk(await under.listen('TCP'), 'request'), answer);
});

test('bulk data in both directions arrives unchanged, also with a receiver that is slow at first', async () => {
  const data = randomBytes(24_000_000);
  const under = await EngineUnderTest.open(cleanups);
  const peer = await tcpPeer(cleanups, (socket) => {
    socket.pause();
    setTimeout(() => socket.pipe(socket), 200);
  });
  under.serve([peer]);
  const socket = connect(await under.listen('TCP'));
  socket.end(data);
  const chunks: Buffer[] = [];
  for await (const chunk of socket) chunks.push(chunk as Buffer);
  assert.ok(Buffer.concat(chunks).equals(data));
  const { bytesIn, bytesOut } = await under.traffic();
  assert.deepEqual([bytesIn, bytesOut], [data.length, data.length]);
});

/** Real sockets with one call replaced. */
function butFor<Name extends 'splice' | 'pipe' | 'connect'>(
  name: Name,
  call: (real: Sockets) => Sockets[Name],
) {
  return (real: Sockets): Sockets =>
    new Proxy(real, {
      get(target, each) {
        if (each === name) return call(target);
        const member: unknown = Reflect.get(target, each, target);
        return typeof member === 'function' ? member.bind(target) : member;
      },
    });
}

/** Returns whether bulk data comes back unchanged from an echoing endpoint. */
async function isReturned(under: EngineUnderTest): Promise<boolean> {
  const data = randomBytes(8_000_000);
  under.serve([await tcpPeer(cleanups, (socket) => socket.pipe(socket))]);
  const socket = connect(await under.listen('TCP'));
  socket.end(data);
  const chunks: Buffer[] = [];
  for await (const chunk of socket) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).equals(data);
}

test('bytes are copied when the kernel does not support splice', async () => {
  const EINVAL = 22;
  let tries = 0;
  const sockets = butFor('splice', () => () => (++tries > 0 ? -EINVAL : 0));
  assert.ok(await isReturned(await EngineUnderTest.open(cleanups, { sockets })));
  assert.ok(tries > 0);
});

test('bytes are copied without a pipe when few files are left', async () => {
  let pipes = 0;
  const sockets = butFor('pipe', (real) => (bytes) => {
    pipes++;
    return real.pipe(bytes);
  });
  assert.ok(await isReturned(await EngineUnderTest.open(cleanups, { sockets, limits: { files: 6 } })));
  assert.equal(pipes, 0);
  assert.ok(await isReturned(await EngineUnderTest.open(cleanups, { sockets })));
  assert.ok(pipes > 0);
});

test('a receiver that reads nothing stops the sender', async () => {
  const under = await EngineUnderTest.open(cleanups);
  under.serve([await tcpPeer(cleanups, (socket) => socket.pause())]);
  const socket = connect(await under.listen('TCP'));
  cleanups.add(() => socket.destroy());
  socket.on('error', () => {});
  for (let i = 0; i < 64; i++) socket.write(Buffer.alloc(1 << 20));
  // Until nothing moves any more.
  for (let before = -1, i = 0; before !== socket.bytesWritten - socket.writableLength && i < 100; i++) {
    before = socket.bytesWritten - socket.writableLength;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  assert.ok(socket.writableLength > 0, 'everything was taken');
  assert.ok((await under.traffic()).bytesIn < 32 << 20);
});

test('a connection to a service without endpoints is accepted and closed', async () => {
  const under = await EngineUnderTest.open(cleanups);
  under.serve([]);
  assert.equal(await fateOf(await under.listen('TCP')), 'end');
  assert.deepEqual((await under.traffic()).unserved, 1);
});

test('a connection whose endpoint does not answer tries the next one, and other connections do not wait', async () => {
  const under = await EngineUnderTest.open(cleanups);
  const hole = blackHole(under.sockets, cleanups);
  const healthy = await tcpPeer(cleanups, echoAs('healthy'));
  under.serve([hole, healthy]);
  const at = await under.listen('TCP');
  const texts = await Promise.all(Array.from({ length: 8 }, () => talk(at, '!')));
  assert.deepEqual(new Set(texts), new Set(['healthy:!']));
  const { endpoints } = await under.traffic();
  assert.equal(endpoints.get(`127.0.0.1:${hole.port}`)?.dialFailures, 4);
});

test('an endpoint that answered while the process was blocked is not given up', async () => {
  const held = new Int32Array(new SharedArrayBuffer(4));
  const sockets = butFor('connect', (real) => (fd, address) => {
    const result = real.connect(fd, address);
    Atomics.wait(held, 0, 0, 300);
    return result;
  });
  const under = await EngineUnderTest.open(cleanups, { sockets });
  const peer = await tcpPeer(cleanups, echoAs('a'));
  under.serve([peer]);
  assert.equal(await talk(await under.listen('TCP'), 'x'), 'a:x');
  const { endpoints } = await under.traffic();
  assert.equal(endpoints.get(`127.0.0.1:${peer.port}`)?.dialFailures, 0);
});

test('an endpoint that answered is not given up when its thread runs late and comes to the timer first', async () => {
  const time = { ms: 0 };
  const clock = new LoopClock({ now: () => time.ms, monotonic: () => time.ms });
  const slow = butFor('connect', (real) => (fd, address) => {
    time.ms += 300;
    return real.connect(fd, address);
  });
  const engine = new Engine({
    sockets: slow(await loadSockets()),
    limits: limitsFor(2_000),
    clock,
    random: Math.random,
    report: () => {},
    dialTimeouts: [250],
    udpIdleMs: 60_000,
  });
  cleanups.add(() => engine.close());
  const { ip, port } = await tcpPeer(cleanups, echoAs('a'));
  engine.setService('web', { endpoints: [{ ip, port }], affinitySeconds: 0, choice: 'round-robin' });
  const at = { ip, port: engine.listen('l', { service: 'web', protocol: 'TCP', at: { ip, port: 0 } }) };
  let answer: string | undefined;
  void talk(at, 'x')
    .catch(String)
    .then((text) => (answer = text));
  while (answer === undefined) {
    engine.loop.turn(0);
    clock.advance(0);
    await setImmediate();
  }
  assert.equal(answer, 'a:x');
});

test('with affinity a client is bound to the endpoint that answered', async () => {
  const under = await EngineUnderTest.open(cleanups);
  const refusing = { ip: '127.0.0.1', port: await freePort() };
  const healthy = await tcpPeer(cleanups, echoAs('healthy'));
  under.serve([refusing, healthy], 60);
  const at = await under.listen('TCP');
  for (let i = 0; i < 6; i++) assert.equal(await talk(at), 'healthy:');
  const { endpoints } = await under.traffic();
  assert.ok((endpoints.get(`127.0.0.1:${refusing.port}`)?.dialFailures ?? 0) <= 1);
});

test('when all endpoints refuse, the connection is closed after four attempts', async () => {
  const under = await EngineUnderTest.open(cleanups);
  const refusing = { ip: '127.0.0.1', port: await freePort() };
  under.serve([refusing]);
  assert.equal(await fateOf(await under.listen('TCP')), 'end');
  const { endpoints, open } = await under.traffic();
  assert.equal(endpoints.get(`127.0.0.1:${refusing.port}`)?.dialFailures, 4);
  assert.equal(open, 0);
});

test('a reset by the endpoint becomes a reset for the client, and the other way round', async () => {
  const under = await EngineUnderTest.open(cleanups);
  const peer = await tcpPeer(cleanups, (socket) => socket.once('data', () => socket.resetAndDestroy()));
  under.serve([peer]);
  const at = await under.listen('TCP');
  const socket = connect(at);
  socket.write('x');
  const [error] = (await once(socket, 'error')) as [NodeJS.ErrnoException];
  assert.equal(error.code, 'ECONNRESET');

  const seen = Promise.withResolvers<NodeJS.ErrnoException>();
  const watching = await tcpPeer(cleanups, (client) => {
    client.on('error', seen.resolve);
    client.write('hello');
  });
  under.serve([watching]);
  const other = connect(at);
  await once(other, 'data');
  other.resetAndDestroy();
  assert.equal((await seen.promise).code, 'ECONNRESET');
});

function openConnections(under: EngineUnderTest, expected: number): Promise<void> {
  const look = async () => (await under.traffic()).open;
  return eventuallyEqual(`${expected} open connections`, look, expected);
}

/** A client that can close its sending half first and reset the connection later; Node's sockets cannot. */
function rawClient({ sockets }: EngineUnderTest, to: Peer) {
  const fd = sockets.socket(AF_INET, SOCK_STREAM);
  sockets.connect(fd, encodeAddress(to));
  return {
    end: () => sockets.shutdownWrite(fd),
    reset() {
      sockets.abortOnClose(fd);
      sockets.close(fd);
    },
  };
}

test('a reset by the client after its regular end is noticed, though the endpoint never ends', async () => {
  const under = await EngineUnderTest.open(cleanups);
  const ended = Promise.withResolvers<void>();
  const peer = await tcpPeer(cleanups, (socket) => socket.resume().on('end', ended.resolve));
  under.serve([peer]);
  const client = rawClient(under, await under.listen('TCP'));
  await openConnections(under, 1);
  client.end();
  await ended.promise;
  client.reset();
  await openConnections(under, 0);
});

test('a reset by the client is noticed while its endpoint reads nothing', async () => {
  const under = await EngineUnderTest.open(cleanups);
  under.serve([await tcpPeer(cleanups, (socket) => socket.pause())]);
  const socket = connect(await under.listen('TCP')).on('error', () => {});
  for (let i = 0; i < 64; i++) socket.write(Buffer.alloc(1 << 20));
  let before = -1;
  await eventually(
    'nothing moves',
    async () => {
      const moved = (await under.traffic()).bytesIn;
      const isStill = moved > 0 && moved === before;
      before = moved;
      return isStill;
    },
    { everyMs: 200 },
  );
  socket.resetAndDestroy();
  await openConnections(under, 0);
});

test('a reset by the endpoint after its regular end is noticed, though the client never ends', async () => {
  const under = await EngineUnderTest.open(cleanups);
  const { sockets } = under;
  const fd = sockets.socket(AF_INET, SOCK_STREAM);
  cleanups.add(() => sockets.close(fd));
  const address = encodeAddress({ ip: '127.0.0.1', port: 0 });
  sockets.bind(fd, address);
  sockets.listen(fd, 1);
  sockets.getsockname(fd, address);
  under.serve([decodeAddress(address)]);
  const socket = connect({ ...(await under.listen('TCP')), allowHalfOpen: true });
  cleanups.add(() => socket.destroy());
  socket.resume().on('error', () => {});
  let server = -1;
  await eventually('a connection', () => {
    server = sockets.accept(fd, new Uint8Array(maxAddressBytes));
    return server >= 0;
  });
  sockets.shutdownWrite(server);
  await once(socket, 'end');
  sockets.abortOnClose(server);
  sockets.close(server);
  await openConnections(under, 0);
});

test('a closed listener refuses connections; open ones continue unless they are to end too', async () => {
  const under = await EngineUnderTest.open(cleanups);
  under.serve([await tcpPeer(cleanups, echoAs('a'))]);
  const [kept, ended] = [await under.listen('TCP'), await under.listen('TCP')];
  const sockets = [connect(kept), connect(ended)];
  for (const socket of sockets) {
    socket.on('error', () => {});
    await once(socket, 'data');
  }
  const isEnded = new Promise((resolve) => sockets[1]?.on('close', resolve));
  under.engine.unlisten(kept.id, false);
  under.engine.unlisten(ended.id, true);
  under.engine.removeService('web');
  assert.equal(await fateOf(kept), 'ECONNREFUSED');
  sockets[0]?.write('still here');
  assert.equal(String((await once(sockets[0] ?? process, 'data'))[0]), 'still here');
  await isEnded;
  sockets[0]?.destroy();
});

test('connections and bytes are counted per service and endpoint', async () => {
  const under = await EngineUnderTest.open(cleanups);
  const peer = await tcpPeer(cleanups, echoAs('a'));
  under.serve([peer]);
  const at = await under.listen('TCP');
  const socket = connect(at);
  await once(socket, 'data');
  socket.write('12345');
  await once(socket, 'data');
  const name = `127.0.0.1:${peer.port}`;
  const during = structuredClone(await under.traffic());
  assert.deepEqual(
    { ...during, endpoints: undefined },
    {
      connections: 1,
      open: 1,
      bytesIn: 5,
      bytesOut: 7,
      unserved: 0,
      endpoints: undefined,
    },
  );
  assert.deepEqual(during.endpoints.get(name), {
    connections: 1,
    open: 1,
    bytesIn: 5,
    bytesOut: 7,
    dialFailures: 0,
    dialling: 0,
  });
  socket.end();
  await once(socket, 'close');
  const after = await under.traffic();
  assert.deepEqual([after.open, after.endpoints.get(name)?.open], [0, 0]);
});

test('connections are reported with their client and endpoint, also of a closed listener', async () => {
  const under = await EngineUnderTest.open(cleanups);
  const peer = await tcpPeer(cleanups, echoAs('a'));
  under.serve([peer]);
  const opened = async (at: Peer) => {
    const socket = connect(at);
    cleanups.add(async () => void socket.destroy());
    socket.write('hello');
    await once(socket, 'data');
    const report = {
      service: 'web',
      client: `127.0.0.1:${socket.localPort}`,
      endpoint: `${peer.ip}:${peer.port}`,
    };
    return { socket, report };
  };
  const closing = await under.listen('TCP');
  const early = await opened(closing);
  under.engine.unlisten(closing.id, false);
  assert.deepEqual(await under.engine.connections(), { startsOver: true, connections: [early.report] });
  const late = await opened(await under.listen('TCP'));
  assert.deepEqual(await under.engine.connections(), { startsOver: false, connections: [late.report] });
});

test('a removed service is not counted, even if connection attempts were under way', async () => {
  const under = await EngineUnderTest.open(cleanups);
  const hole = blackHole(under.sockets, cleanups);
  under.serve([hole]);
  const at = await under.listen('TCP');
  // One client gives up by itself, the other still waits when the attempt times out.
  const [leaving, staying] = [connect(at), connect(at)];
  const over = [leaving, staying].map((socket) => new Promise((resolve) => socket.on('close', resolve)));
  for (const socket of [leaving, staying]) socket.on('error', () => {}).resume();
  const dialling = async () => (await under.traffic()).endpoints.get(`${hole.ip}:${hole.port}`)?.dialling;
  await eventuallyEqual('two attempts', dialling, 2);
  under.engine.unlisten(at.id, false);
  under.engine.removeService('web');
  leaving.resetAndDestroy();
  await Promise.all(over);
  assert.deepEqual([...(await under.engine.traffic()).keys()], []);
});

test('a connection attempt ends with its service, also if the service comes back with other endpoints', async () => {
  const under = await EngineUnderTest.open(cleanups);
  under.serve([blackHole(under.sockets, cleanups)]);
  const at = await under.listen('TCP');
  const fate = fateOf(at);
  const isDialling = async () => [...(await under.traffic()).endpoints.values()][0]?.dialling === 1;
  await eventually('an endpoint is tried', isDialling);
  under.engine.unlisten(at.id, false);
  under.engine.removeService('web');
  under.serve([await tcpPeer(cleanups, echoAs('new'))]);
  assert.equal(await fate, 'end');
  assert.equal(await talk(await under.listen('TCP'), 'x'), 'new:x');
  assert.deepEqual([(await under.traffic()).connections, (await under.traffic()).open], [1, 0]);
});

test('least-connections prefers idle endpoints', async () => {
  const under = await EngineUnderTest.open(cleanups);
  under.serve(
    [await tcpPeer(cleanups, echoAs('a')), await tcpPeer(cleanups, echoAs('b'))],
    0,
    'least-connections',
  );
  const at = await under.listen('TCP');
  const held = connect(at);
  cleanups.add(() => held.destroy());
  const busy = String((await once(held, 'data'))[0]);
  for (let i = 0; i < 4; i++) assert.notEqual(await talk(at), busy);
});

test('least-connections counts connection attempts', async () => {
  const under = await EngineUnderTest.open(cleanups);
  const hole = blackHole(under.sockets, cleanups);
  under.serve([hole, await tcpPeer(cleanups, echoAs('a'))], 0, 'least-connections');
  const at = await under.listen('TCP');
  const held = connect(at);
  cleanups.add(() => held.destroy());
  await once(held, 'data');
  const texts = await Promise.all(Array.from({ length: 6 }, () => talk(at, '!')));
  assert.deepEqual(new Set(texts), new Set(['a:!']));
  const { endpoints } = await under.traffic();
  assert.equal(endpoints.get(`127.0.0.1:${hole.port}`)?.dialling, 0);
});

test('at the limit new connections wait until others end, and one service cannot take all connections', async () => {
  const under = await EngineUnderTest.open(cleanups, { limits: { perService: 2 } });
  const peer = await tcpPeer(cleanups, echoAs('a'));
  under.serve([peer]);
  under.serve([peer], 0, 'round-robin', 'other');
  const [at, other] = [await under.listen('TCP'), await under.listen('TCP', '127.0.0.1', 'other')];
  const held = [connect(at), connect(at)];
  for (const socket of held) {
    cleanups.add(() => socket.destroy());
    await once(socket, 'data');
  }
  const waiting = talk(at, 'late');
  assert.equal(await talk(other, 'x'), 'a:x');
  assert.equal((await under.traffic()).connections, 2);
  held[0]?.destroy();
  assert.equal(await waiting, 'a:late');
  assert.ok(under.reports.some(({ problem }) => problem === 'New connections must wait'));
});

test('listen fails with EADDRINUSE when the TCP address is in use', async () => {
  const under = await EngineUnderTest.open(cleanups);
  const { port } = await tcpPeer(cleanups, echoAs('a'));
  const listening = { service: 'web', protocol: 'TCP', at: { ip: '127.0.0.1', port } } as const;
  await assert.rejects(under.engine.listen('x', listening), { code: 'EADDRINUSE' });
});
