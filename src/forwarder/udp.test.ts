import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { afterEach, test } from 'node:test';
import { eventually, eventuallyEqual } from '../../test/eventually.ts';
import { answering, EngineUnderTest } from '../../test/userspace/engine-under-test.ts';
import { Cleanups, freePort, UDPClient, udpPeer } from '../../test/userspace/peers.ts';
import { EMSGSIZE, type Sockets } from '../native/sockets.ts';
import { endpointName } from './forwarder.ts';
import { decodeAddress } from './socket-address.ts';

const cleanups = new Cleanups();
afterEach(() => cleanups.run());

function openSessions(under: EngineUnderTest, expected: number): Promise<void> {
  return eventuallyEqual(`${expected} open sessions`, async () => (await under.traffic()).open, expected);
}

test('a UDP client keeps its endpoint, and another client gets the other one', async () => {
  for (const ip of ['127.0.0.1', '::1']) {
    const under = await EngineUnderTest.open(cleanups, { udpIdleMs: 10_000 });
    const peers = [await udpPeer(cleanups, 'a', ip), await udpPeer(cleanups, 'b', ip)];
    under.serve(peers);
    const at = await under.listen('UDP', ip);
    const [one, two] = [await UDPClient.open(cleanups, ip), await UDPClient.open(cleanups, ip)];
    const first = String(await one.ask(at, '1'));
    const second = String(await two.ask(at, '1'));
    assert.deepEqual([first, second].toSorted(), ['a:1', 'b:1']);
    assert.equal(String(await one.ask(at, '2')), `${first[0]}:2`);
    assert.equal((await under.traffic()).open, 2);
    const { connections } = await under.engine.connections();
    assert.deepEqual(
      connections.map(({ endpoint }) => endpoint).toSorted(),
      peers.map(endpointName).toSorted(),
    );
    for (const { client } of connections)
      assert.ok(client.startsWith(endpointName({ ip, port: 0 }).slice(0, -1)));
  }
});

test('an idle session ends, and the next datagram begins another', async () => {
  const under = await EngineUnderTest.open(cleanups, { udpIdleMs: 2_000 });
  under.serve([await udpPeer(cleanups, 'a')]);
  const at = await under.listen('UDP');
  const client = await UDPClient.open(cleanups);
  await client.ask(at, 'x');
  assert.equal((await under.traffic()).open, 1);
  await openSessions(under, 0);
  assert.equal(String(await client.ask(at, 'y')), 'a:y');
  assert.equal((await under.traffic()).connections, 2);
});

test('datagrams of all sizes pass unchanged', async () => {
  const under = await EngineUnderTest.open(cleanups);
  under.serve([await udpPeer(cleanups, 'a')]);
  const at = await under.listen('UDP');
  const client = await UDPClient.open(cleanups);
  for (const size of [0, 9_000, 65_000]) {
    const data = randomBytes(size);
    assert.ok((await client.ask(at, data)).equals(Buffer.concat([Buffer.from('a:'), data])));
  }
});

test('a UDP client whose endpoint is removed continues with another at once', async () => {
  const under = await EngineUnderTest.open(cleanups, { udpIdleMs: 10_000 });
  const [a, b] = [await udpPeer(cleanups, 'a'), await udpPeer(cleanups, 'b')];
  under.serve([a]);
  const at = await under.listen('UDP');
  const client = await UDPClient.open(cleanups);
  assert.equal(String(await client.ask(at, '1')), 'a:1');
  under.serve([b]);
  assert.equal(String(await client.ask(at, '2')), 'b:2');
});

test('a UDP client stays with a draining endpoint, new clients get another', async () => {
  const under = await EngineUnderTest.open(cleanups, { udpIdleMs: 10_000 });
  const [a, b] = [await udpPeer(cleanups, 'a'), await udpPeer(cleanups, 'b')];
  under.serve([a]);
  const at = await under.listen('UDP');
  const client = await UDPClient.open(cleanups);
  assert.equal(String(await client.ask(at, '1')), 'a:1');
  under.engine.setService('web', {
    endpoints: [b],
    draining: [a],
    affinitySeconds: 0,
    choice: 'round-robin',
  });
  assert.equal(String(await client.ask(at, '2')), 'a:2');
  assert.equal(String(await (await UDPClient.open(cleanups)).ask(at, '3')), 'b:3');
});

test('an endpoint without a listener ends the session, and the next datagram goes to another endpoint', async () => {
  const under = await EngineUnderTest.open(cleanups, { udpIdleMs: 10_000 });
  const dead = { ip: '127.0.0.1', port: await freePort() };
  under.serve([dead]);
  const at = await under.listen('UDP');
  const client = await UDPClient.open(cleanups);
  client.send(at, 'lost');
  const failures = async () => (await under.traffic()).endpoints.get(`127.0.0.1:${dead.port}`)?.dialFailures;
  await eventuallyEqual('a failure', failures, 1);
  assert.equal((await under.traffic()).open, 0);
  under.serve([dead, await udpPeer(cleanups, 'a')]);
  for (let i = 0; i < 4; i++) assert.equal(String(await client.ask(at, 'x')), 'a:x');
});

const ENETUNREACH = 101;

test('neither affinity nor least-connections keeps a client at an endpoint without a listener', async () => {
  for (const [affinity, choice] of [
    [60, 'round-robin'],
    [0, 'least-connections'],
  ] as const) {
    const under = await EngineUnderTest.open(cleanups, { udpIdleMs: 10_000 });
    const dead = { ip: '127.0.0.1', port: await freePort() };
    under.serve([dead], affinity, choice);
    const at = await under.listen('UDP');
    const failures = async () =>
      (await under.traffic()).endpoints.get(`127.0.0.1:${dead.port}`)?.dialFailures;
    (await UDPClient.open(cleanups)).send(at, 'x');
    await eventuallyEqual('a failure', failures, 1);
    under.serve([dead, await udpPeer(cleanups, 'a')], affinity, choice);
    // Each time from another port, like resolvers.
    for (let i = 0; i < 4; i++) {
      const client = await UDPClient.open(cleanups);
      assert.equal(String(await client.ask(at, 'x')), 'a:x');
    }
    assert.equal(await failures(), 1);
  }
});

test('a datagram that cannot be sent to one endpoint goes to the next at once', async () => {
  const good = await udpPeer(cleanups, 'a');
  const others = [await udpPeer(cleanups, 'b'), await udpPeer(cleanups, 'c'), await udpPeer(cleanups, 'd')];
  const unreachable = new Set<number>();
  const note = (fd: number, address: Uint8Array): undefined => {
    if (decodeAddress(address).port === good.port) unreachable.delete(fd);
    else unreachable.add(fd);
  };
  const refuse = (fd: number) => (unreachable.has(fd) ? -ENETUNREACH : undefined);
  const refuseAddress = (fd: number, address: Uint8Array) => {
    note(fd, address);
    return refuse(fd);
  };
  for (const sockets of [
    answering('connect', refuseAddress),
    (real: Sockets) => answering('connect', note)(answering('send', refuse)(real)),
  ]) {
    const under = await EngineUnderTest.open(cleanups, { udpIdleMs: 10_000, sockets });
    under.serve([good, ...others]);
    const at = await under.listen('UDP');
    for (let i = 0; i < 4; i++) {
      const client = await UDPClient.open(cleanups);
      assert.equal(String(await client.ask(at, 'x')), 'a:x');
    }
    assert.equal((await under.traffic()).open, 4);
  }
});

test('when no endpoint can be reached a datagram is dropped after as many attempts as a TCP connection', async () => {
  const under = await EngineUnderTest.open(cleanups, { sockets: answering('connect', () => -ENETUNREACH) });
  const peer = await udpPeer(cleanups, 'a');
  under.serve([peer]);
  const at = await under.listen('UDP');
  (await UDPClient.open(cleanups)).send(at, 'x');
  const failures = async () => (await under.traffic()).endpoints.get(`127.0.0.1:${peer.port}`)?.dialFailures;
  await eventuallyEqual('four attempts', failures, 4);
  assert.equal((await under.traffic()).open, 0);
});

test('a datagram for a service without endpoints is dropped and counted', async () => {
  const under = await EngineUnderTest.open(cleanups);
  under.serve([]);
  const at = await under.listen('UDP');
  const client = await UDPClient.open(cleanups);
  await assert.rejects(client.ask(at, 'x', 100));
  await eventuallyEqual('it is counted', async () => (await under.traffic()).unserved, 1);
  assert.equal((await under.traffic()).open, 0);
});

test('at the limit the session that was idle for longest ends', async () => {
  const under = await EngineUnderTest.open(cleanups, {
    udpIdleMs: 60_000,
    limits: { perService: 2 },
  });
  under.serve([await udpPeer(cleanups, 'a')]);
  const at = await under.listen('UDP');
  for (let i = 0; i < 5; i++) {
    const client = await UDPClient.open(cleanups);
    assert.equal(String(await client.ask(at, 'x')), 'a:x');
  }
  assert.deepEqual([(await under.traffic()).open, (await under.traffic()).connections], [2, 5]);
});

test('with affinity datagrams from all ports of a client go to one endpoint', async () => {
  const under = await EngineUnderTest.open(cleanups);
  under.serve([await udpPeer(cleanups, 'a'), await udpPeer(cleanups, 'b')], 60);
  const at = await under.listen('UDP');
  const heard = new Set<string>();
  for (let i = 0; i < 6; i++) heard.add(String(await (await UDPClient.open(cleanups)).ask(at, 'x')));
  assert.equal(heard.size, 1);
});

test('a UDP socket that fails is reopened on the same port', async () => {
  let failures = 1;
  const EBADF = 9;
  const under = await EngineUnderTest.open(cleanups, {
    sockets: answering('receiveFrom', () => (failures-- > 0 ? -EBADF : undefined)),
  });
  under.serve([await udpPeer(cleanups, 'a')]);
  const at = await under.listen('UDP');
  const client = await UDPClient.open(cleanups);
  client.send(at, 'lost');
  const isReported = () => under.reports.some(({ problem }) => problem.startsWith('UDP socket failed'));
  await eventually('a report', isReported);
  assert.equal(String(await client.ask(at, 'x')), 'a:x');
});

test('listen fails and frees the port when the socket cannot be watched', async () => {
  const ENOSPC = 28;
  let failures = 1;
  const under = await EngineUnderTest.open(cleanups, {
    sockets: (real) =>
      answering('openQueue', (size) => {
        const queue = real.openQueue(size);
        const add = queue.add.bind(queue);
        queue.add = (...args) => (failures-- > 0 ? -ENOSPC : add(...args));
        return queue;
      })(real),
  });
  under.serve([await udpPeer(cleanups, 'a')]);
  const listening = {
    service: 'web',
    protocol: 'UDP',
    at: { ip: '127.0.0.1', port: await freePort() },
  } as const;
  await assert.rejects(under.engine.listen('x', listening), { code: 'ENOSPC' });
  await under.engine.listen('x', listening);
  const client = await UDPClient.open(cleanups);
  assert.equal(String(await client.ask(listening.at, 'x')), 'a:x');
});

test('a datagram that is too long for the path is lost, and the session continues', async () => {
  let isTold = false;
  const under = await EngineUnderTest.open(cleanups, {
    udpIdleMs: 10_000,
    // As after a router reported that an earlier datagram was too long.
    sockets: answering('read', () => {
      if (isTold) return undefined;
      isTold = true;
      return -EMSGSIZE;
    }),
  });
  under.serve([await udpPeer(cleanups, 'a')]);
  const at = await under.listen('UDP', '::1');
  const client = await UDPClient.open(cleanups, '::1');
  assert.equal(String(await client.ask(at, '1')), 'a:1');
  // IPv6 takes a little more than IPv4, by which the endpoint is reached.
  client.send(at, Buffer.alloc(65_520));
  assert.equal(String(await client.ask(at, '2')), 'a:2');
  const { connections, endpoints } = await under.traffic();
  assert.equal(connections, 1);
  assert.deepEqual(
    [...endpoints.values()].map(({ dialFailures }) => dialFailures),
    [0],
  );
});
