import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { suite, test } from 'node:test';
import fc from 'fast-check';
import { FakeClock } from '../../../test/fake-clock.ts';
import { FakeNetlink, fakeAck, fakeDone, fakeMessage } from '../../../test/kernel/fake-netlink.ts';
import { NetlinkFormatError, type NetlinkMessage, readMessages } from '../netlink/reader.ts';
import type { MessageWriter } from '../netlink/writer.ts';
import { IpvsUnavailableError, NetlinkIpvsClient } from './client.ts';
import { readRealServer, readServer } from './codec.ts';
import { describeOperation, type IpvsOperation, type VirtualServer } from './objects.ts';

const family = 32;
const server: VirtualServer = {
  address: '10.96.0.1',
  port: 80,
  protocol: 'TCP',
  scheduler: 'rr',
  flags: 0,
  timeout: 0,
  netmask: 0xffffffff,
};

test('a kernel without IPVS is reported, and the socket is closed', async () => {
  const kernel = new FakeNetlink(([request], { portId }) => [
    fakeAck({ sequence: request?.sequence ?? 0, port: portId }, 2),
  ]);
  const connection = NetlinkIpvsClient.connect(kernel, { clock: new FakeClock() });
  await assert.rejects(connection, IpvsUnavailableError);
  assert.ok(kernel.closed);
});

suite('changes', () => {
  test('IPVS changes are sent 512 at a time, and each refusal is matched to its change', async () => {
    const { client, kernel } = await connect((messages, { port }) =>
      messages.map(({ sequence }, i) => fakeAck({ sequence, port }, i % 100 === 7 ? 17 : 0)),
    );
    const operations = Array.from({ length: 1200 }, (_, port): IpvsOperation => {
      return { verb: 'add', server: { ...server, port } };
    });
    const failures = await client.apply(operations);
    // The first datagram asks for the number of the family.
    assert.equal(kernel.sent.length, 1 + 3);
    // The eighth of every hundred of a datagram: 512, 512 and 176 changes.
    const expected = [0, 512].flatMap((from) => [7, 107, 207, 307, 407, 507].map((at) => from + at));
    assert.deepEqual(
      failures.map(({ operation }) => operation.server.port),
      [...expected, 1024 + 7, 1024 + 107],
    );
    assert.equal(failures[1]?.error.code, 'EEXIST');
    assert.match(failures[1]?.error.message ?? '', /^adding virtual server 10\.96\.0\.1:107\/TCP: EEXIST/);
  });

  test('IPVS changes with an invalid address are refused before any request is sent', async () => {
    const { client, kernel } = await connect(() => []);
    const real = { address: '10.0.0', port: 1, weight: 1 };
    await assert.rejects(client.apply([{ verb: 'add', server, real }]), /real server address "10\.0\.0"/);
    const bad = { ...server, address: 'localhost' };
    await assert.rejects(
      client.apply([{ verb: 'delete', server: bad }]),
      /virtual server address "localhost"/,
    );
    assert.equal(kernel.sent.length, 1);
  });

  test('IPVS changes are described in words', () => {
    const six = { ...server, address: 'fd00::1', protocol: 'UDP' } as const;
    const real = { address: 'fd01::1', port: 53, weight: 0 };
    assert.equal(describeOperation({ verb: 'edit', server }), 'changing virtual server 10.96.0.1:80/TCP');
    assert.equal(
      describeOperation({ verb: 'delete', server: six, real }),
      'deleting real server [fd01::1]:53 from [fd00::1]:80/UDP',
    );
  });
});

suite('odd kernels', () => {
  test('a virtual server with an unknown protocol is foreign', async () => {
    const { client } = await connect((_, to) => [
      object(to, 1, 1, (writer) => {
        writer.u16(1, 10);
        writer.u16(2, 47);
        writer.string(6, 'wlc');
      }),
      fakeDone(to),
    ]);
    assert.deepEqual(await client.listServers(), [
      { foreign: 'IP protocol 47', family: 'IPv6', scheduler: 'wlc' },
    ]);
  });

  test('the family of a real server is guessed when the kernel does not report it', async () => {
    const v4 = Uint8Array.of(10, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
    const v6 = Uint8Array.of(0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1);
    const { client } = await connect((_, to) => [
      ...[v4, v6].map((address) =>
        object(to, 5, 2, (writer) => {
          writer.data(1, address);
          writer.u16Be(2, 80);
        }),
      ),
      fakeDone(to),
    ]);
    const addresses = (await client.listRealServers(server)).map(({ address }) => address);
    assert.deepEqual(addresses, ['10.0.0.1', 'fd00::1']);
  });

  test('an IPVS object without an address or with an unknown family is refused', async () => {
    const { client } = await connect((_, to) => [
      object(to, 1, 1, (writer) => {
        writer.u16(1, 2);
        writer.u16(2, 6);
      }),
      fakeDone(to),
    ]);
    await assert.rejects(client.listServers(), NetlinkFormatError);
    const { client: other } = await connect((_, to) => [object(to, 1, 1, (w) => w.u16(1, 7)), fakeDone(to)]);
    await assert.rejects(other.listServers(), /address family 7/);
  });
});

test('no bytes crash or hang the IPVS decoders', () => {
  const datagrams = recordedReplies();
  const damaged = fc.tuple(
    fc.constantFrom(...datagrams),
    fc.array(fc.tuple(fc.nat(2000), fc.nat(255)), { minLength: 1, maxLength: 6 }),
  );
  fc.assert(
    fc.property(damaged, ([datagram, changes]) => {
      const bytes = datagram.slice();
      for (const [at, value] of changes) bytes[at % bytes.length] = value;
      try {
        for (const message of readMessages(bytes)) {
          readServer(message);
          readRealServer(message);
        }
      } catch (error) {
        if (!(error instanceof NetlinkFormatError)) throw error;
      }
    }),
    { numRuns: 3000 },
  );
});

function recordedReplies(): Uint8Array[] {
  const text = readFileSync(join(import.meta.dirname, 'testdata/conversation.hex'), 'utf8');
  const replies = text.split('\n').filter((line) => line.startsWith('< '));
  const datagrams = replies.map((line) => Uint8Array.from(Buffer.from(line.slice(2), 'hex')));
  return datagrams.filter((bytes) => readMessages(bytes).some(({ type }) => type === family));
}

type To = { sequence: number; port: number };

/** A client of a kernel with IPVS; `answer` is its answer to IPVS requests. */
async function connect(answer: (request: readonly NetlinkMessage[], to: To) => Uint8Array[]) {
  const kernel = new FakeNetlink((request, { portId }) => {
    const to = { sequence: request[0]?.sequence ?? 0, port: portId };
    if (request[0]?.type === family) return answer(request, to);
    const found = fakeMessage({ type: 16, ...to }, (writer) => {
      writer.raw(Uint8Array.of(1, 2, 0, 0));
      writer.u16(1, family);
    });
    return [found, fakeAck(to)];
  });
  return { kernel, client: await NetlinkIpvsClient.connect(kernel, { clock: new FakeClock() }) };
}

function object(to: To, command: number, type: number, write: (writer: MessageWriter) => void): Uint8Array {
  return fakeMessage({ type: family, ...to }, (writer) => {
    writer.raw(Uint8Array.of(command, 1, 0, 0));
    const nest = writer.beginNested(type);
    write(writer);
    writer.endNested(nest);
  });
}
