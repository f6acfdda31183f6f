import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { afterEach, test } from 'node:test';
import { eventuallyEqual } from '../../test/eventually.ts';
import { EngineUnderTest } from '../../test/userspace/engine-under-test.ts';
import { Cleanups, freePort, UDPClient, udpPeer } from '../../test/userspace/peers.ts';

const cleanups = new Cleanups();
afterEach(() => cleanups.run());

function openSessions(under: EngineUnderTest, expected: number): Promise<void> {
  return eventuallyEqual(`${expected} open sessions`, async () => (await under.traffic()).open, expected);
}

test('a client keeps its endpoint while it talks, and another client gets the other', async () => {
  for (const ip of ['127.0.0.1', '::1']) {
    const under = await EngineUnderTest.open(cleanups, { udpIdleMs: 10_000 });
    under.serve([await udpPeer(cleanups, 'a', ip), await udpPeer(cleanups, 'b', ip)]);
    const at = await under.listen('UDP', ip);
    const [one, two] = [await UDPClient.open(cleanups, ip), await UDPClient.open(cleanups, ip)];
    const first = String(await one.ask(at, '1'));
    const second = String(await two.ask(at, '1'));
    assert.deepEqual([first, second].toSorted(), ['a:1', 'b:1']);
    assert.equal(String(await one.ask(at, '2')), `${first[0]}:2`);
    assert.equal((await under.traffic()).open, 2);
  }
});

test('a silent session ends, and the next datagram begins another', async () => {
  const under = await EngineUnderTest.open(cleanups);
  under.serve([await udpPeer(cleanups, 'a')]);
  const at = await under.listen('UDP');
  const client = await UDPClient.open(cleanups);
  await client.ask(at, 'x');
  assert.equal((await under.traffic()).open, 1);
  await openSessions(under, 0);
  assert.equal(String(await client.ask(at, 'y')), 'a:y');
  assert.equal((await under.traffic()).connections, 2);
});

test('datagrams pass whole, up to the largest', async () => {
  const under = await EngineUnderTest.open(cleanups);
  under.serve([await udpPeer(cleanups, 'a')]);
  const at = await under.listen('UDP');
  const client = await UDPClient.open(cleanups);
  for (const size of [0, 9_000, 65_000]) {
    const data = randomBytes(size);
    assert.ok((await client.ask(at, data)).equals(Buffer.concat([Buffer.from('a:'), data])));
  }
});

test('a client whose endpoint leaves goes on with another at once', async () => {
  const under = await EngineUnderTest.open(cleanups, { udpIdleMs: 10_000 });
  const [a, b] = [await udpPeer(cleanups, 'a'), await udpPeer(cleanups, 'b')];
  under.serve([a]);
  const at = await under.listen('UDP');
  const client = await UDPClient.open(cleanups);
  assert.equal(String(await client.ask(at, '1')), 'a:1');
  under.serve([b]);
  assert.equal(String(await client.ask(at, '2')), 'b:2');
});

test('a client whose endpoint drains stays with it, new clients go elsewhere', async () => {
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

test('an endpoint where nobody listens ends the session, and the next datagram goes elsewhere', async () => {
  const under = await EngineUnderTest.open(cleanups, { udpIdleMs: 10_000 });
  const dead = { ip: '127.0.0.1', port: await freePort() };
  under.serve([dead, await udpPeer(cleanups, 'a')]);
  const at = await under.listen('UDP');
  const client = await UDPClient.open(cleanups);
  let answers = 0;
  for (let i = 0; i < 4; i++) {
    answers += await client.ask(at, 'x', 300).then(
      () => 1,
      () => 0,
    );
  }
  assert.ok(answers >= 3, `${answers} of 4 datagrams were answered`);
});

test('without endpoints a datagram is dropped and counted', async () => {
  const under = await EngineUnderTest.open(cleanups);
  under.serve([]);
  const at = await under.listen('UDP');
  const client = await UDPClient.open(cleanups);
  await assert.rejects(client.ask(at, 'x', 100));
  assert.deepEqual([(await under.traffic()).unserved, (await under.traffic()).open], [1, 0]);
});

test('at the limit the client that was silent for longest gives way', async () => {
  const under = await EngineUnderTest.open(cleanups, {
    udpIdleMs: 60_000,
    limits: { total: 4, perService: 2 },
  });
  under.serve([await udpPeer(cleanups, 'a')]);
  const at = await under.listen('UDP');
  for (let i = 0; i < 5; i++) {
    const client = await UDPClient.open(cleanups);
    assert.equal(String(await client.ask(at, 'x')), 'a:x');
  }
  assert.deepEqual([(await under.traffic()).open, (await under.traffic()).connections], [2, 5]);
});

test('with affinity all ports of a client go to one endpoint', async () => {
  const under = await EngineUnderTest.open(cleanups);
  under.serve([await udpPeer(cleanups, 'a'), await udpPeer(cleanups, 'b')], 60);
  const at = await under.listen('UDP');
  const heard = new Set<string>();
  for (let i = 0; i < 6; i++) heard.add(String(await (await UDPClient.open(cleanups)).ask(at, 'x')));
  assert.equal(heard.size, 1);
});

test('a socket that fails for good is opened again on the same port', async () => {
  let failures = 1;
  const EBADF = 9;
  const under = await EngineUnderTest.open(cleanups, {
    sockets: (real) =>
      new Proxy(real, {
        get(target, name) {
          const member: unknown = Reflect.get(target, name, target);
          if (typeof member !== 'function') return member;
          if (name !== 'receiveFrom') return member.bind(target);
          return (...args: unknown[]) => (failures-- > 0 ? -EBADF : member.apply(target, args));
        },
      }),
  });
  under.serve([await udpPeer(cleanups, 'a')]);
  const at = await under.listen('UDP');
  const client = await UDPClient.open(cleanups);
  await client.ask(at, 'lost', 200).catch(() => undefined);
  assert.equal(String(await client.ask(at, 'x')), 'a:x');
  assert.ok(under.reports.some(({ problem }) => problem.startsWith('A UDP socket failed')));
});
