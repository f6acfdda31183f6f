import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { suite, test } from 'node:test';
import fc from 'fast-check';
import { FakeClock } from '../../../test/fake-clock.ts';
import {
  FakeNetlink,
  type FakeReply,
  fakeAck,
  fakeMessage,
  overrunError,
} from '../../../test/kernel/fake-netlink.ts';
import { NetlinkFormatError, type NetlinkMessage, readMessages } from '../netlink/reader.ts';
import { NetlinkIpsetClient } from './client.ts';
import { readListPart, readProtocol, readRevisions, refusedEntry } from './codec.ts';
import { IpsetError } from './errors.ts';
import type { HashSet } from './objects.ts';

const set: HashSet = {
  name: 'KUBE-CLUSTER-IP',
  type: 'hash:ip,port',
  family: 'IPv4',
  hashSize: 1024,
  maxElements: 65536,
};
const HASH_FULL = 4352;
const LINENO = 9;

suite('changing entries', () => {
  test('changing entries continues after a refused entry', async () => {
    const counts: number[] = [];
    const { client } = connect((message, to) => {
      const count = entriesOf(message);
      counts.push(count);
      return count > 100 ? [refusal(to, 4104, 3)] : [fakeAck(to)];
    });
    const entries = Array.from({ length: 612 }, (_, port) => `10.96.0.1,tcp:${port}`);
    const failures = await client.add(set, entries);
    assert.equal(failures.length, Math.ceil((512 - 100) / 3));
    assert.deepEqual(
      failures.slice(0, 2).map(({ entry }) => entry),
      ['10.96.0.1,tcp:2', '10.96.0.1,tcp:5'],
    );
    const text =
      'adding 10.96.0.1,tcp:2 to ipset KUBE-CLUSTER-IP: IPSET_ERR_INVALID_CIDR (invalid prefix length)';
    assert.equal(failures[0]?.error.message, text);
    assert.deepEqual(counts.slice(0, 3), [512, 509, 506]);
    assert.equal(counts.at(-1), 100);
  });

  test('a full set is asked only once per message', async () => {
    const { client, kernel } = connect((_, to) => [refusal(to, HASH_FULL, 1)]);
    const entries = Array.from({ length: 1000 }, (_, port) => `10.96.0.1,tcp:${port}`);
    const failures = await client.add(set, entries);
    assert.deepEqual(
      failures.map(({ entry }) => entry),
      entries,
    );
    assert.match(
      failures[999]?.error.message ?? '',
      /^adding 10\.96\.0\.1,tcp:999 .*IPSET_ERR_HASH_FULL \(the set is full\)/,
    );
    assert.equal(kernel.sent.length, 2);
  });

  test('invalid entries are not sent to the kernel', async () => {
    const { client, kernel } = connect((_, to) => [fakeAck(to)]);
    const failures = await client.delete(set, ['10.96.0.1,tcp:80', 'junk']);
    assert.deepEqual(
      failures.map(({ entry }) => entry),
      ['junk'],
    );
    const [message] = readMessages(kernel.sent[0] ?? new Uint8Array());
    assert.ok(message && entriesOf(message) === 1);
    assert.deepEqual(await client.add(set, []), []);
    assert.equal(kernel.sent.length, 1);
  });

  test('changing entries rejects when the answer is lost or missing', async () => {
    const lossy = connect(() => [overrunError()]);
    await assert.rejects(lossy.client.add(set, ['10.96.0.1,tcp:80']), /ENOBUFS \(the answer was lost\)/);
    const silent = connect(() => []);
    await assert.rejects(silent.client.add(set, ['10.96.0.1,tcp:80']), /EIO \(no answer came\)/);
  });
});

suite('creating', () => {
  test('creating sets asks for the revisions of a type once, and uses one that the kernel has', async () => {
    for (const [min, max, taken] of [
      [0, 7, 1],
      [0, 0, 0],
      [3, 9, 3],
    ] as const) {
      const { client, kernel } = connect((message, to) =>
        message.type === 0x60d ? [revisions(to, min, max), fakeAck(to)] : [fakeAck(to)],
      );
      await Promise.all([client.create(set), client.create({ ...set, name: 'KUBE-EXTERNAL-IP' })]);
      assert.equal(kernel.sent.length, 3);
      assert.ok(
        Buffer.from(kernel.sent[1] ?? []).includes(Buffer.from(`05000400${`0${taken}`}000000`, 'hex')),
      );
    }
  });

  test('creating a set asks for revisions again after a refusal', async () => {
    const { client, kernel } = connect((_, to) => [fakeAck(to, 4098)]);
    for (let i = 0; i < 2; i++) {
      const message =
        'looking for ipset type hash:ip,port: IPSET_ERR_FIND_TYPE (the kernel does not have this type of set)';
      await assert.rejects(client.create(set), { message });
    }
    assert.equal(kernel.sent.length, 2);
  });

  test('creating a set with a name that is too long is refused', async () => {
    const { client } = connect(() => assert.fail());
    await assert.rejects(client.create({ ...set, name: 'x'.repeat(32) }), /ENAMETOOLONG/);
  });
});

test('destroying a set that rules refer to is refused', async () => {
  const { client } = connect((_, to) => [fakeAck(to, 4100)]);
  const message = 'destroying ipset KUBE-CLUSTER-IP: IPSET_ERR_BUSY (the set is in use)';
  await assert.rejects(client.destroy(set.name), { message, errno: 'IPSET_ERR_BUSY' });
});

test('ipset errors are named by set type, unknown ones by their number', () => {
  assert.match(IpsetError.of('x', 4352, 'bitmap:port').message, /IPSET_ERR_BITMAP_RANGE /);
  assert.match(IpsetError.of('x', 4352, 'hash:ip').message, /IPSET_ERR_HASH_FULL /);
  assert.match(IpsetError.of('x', 4999).message, /E4999/);
  assert.match(IpsetError.of('x', 1).message, /EPERM/);
});

test('no bytes crash or hang the ipset decoders', () => {
  const text = readFileSync(join(import.meta.dirname, 'testdata/conversation.hex'), 'utf8');
  const replies = text.split('\n').filter((line) => line.startsWith('< '));
  const datagrams = replies.map((line) => Uint8Array.from(Buffer.from(line.slice(2), 'hex')));
  const changes = fc.array(fc.tuple(fc.nat(2000), fc.nat(255)), { minLength: 1, maxLength: 6 });
  fc.assert(
    fc.property(fc.constantFrom(...datagrams), changes, (datagram, damage) => {
      const bytes = datagram.slice();
      for (const [at, value] of damage) bytes[at % bytes.length] = value;
      for (const read of [readListPart, readProtocol, readRevisions, refusedEntry]) {
        try {
          readMessages(bytes).forEach(read);
        } catch (error) {
          if (!(error instanceof NetlinkFormatError)) throw error;
        }
      }
    }),
    { numRuns: 3000 },
  );
});

type To = { sequence: number; port: number };

function connect(answer: (message: NetlinkMessage, to: To) => readonly FakeReply[]) {
  const kernel = new FakeNetlink(([message], { portId }) => {
    assert.ok(message);
    return answer(message, { sequence: message.sequence, port: portId });
  });
  return { kernel, client: new NetlinkIpsetClient(kernel, { clock: new FakeClock() }) };
}

/** How many entries a message is to add or delete. */
function entriesOf(message: NetlinkMessage): number {
  let count = 0;
  for (const reader = message.attributes(4); reader.next(); ) {
    if (reader.type === 8) for (const list = reader.nested(); list.next(); ) count++;
  }
  return count;
}

/** The refusal of one entry: the kernel returns the request with the number of the entry in it. */
function refusal(to: To, errno: number, line: number): Uint8Array {
  return fakeMessage({ type: 2, ...to }, (writer) => {
    writer.raw(new Uint8Array(Int32Array.of(-errno).buffer));
    writer.raw(new Uint8Array(16 + 4));
    writer.u32(LINENO, line);
  });
}

function revisions(to: To, min: number, max: number): Uint8Array {
  return fakeMessage({ type: 0x60d, ...to }, (writer) => {
    writer.raw(Uint8Array.of(2, 0, 0, 0));
    writer.u8(4, max);
    writer.u8(10, min);
  });
}
