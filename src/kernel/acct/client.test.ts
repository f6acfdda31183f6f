import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { FakeClock } from '../../../test/fake-clock.ts';
import { FakeNetlink, type FakeReply, fakeAck, fakeMessage } from '../../../test/kernel/fake-netlink.ts';
import { NetlinkFormatError, type NetlinkMessage, readMessages } from '../netlink/reader.ts';
import { NetlinkAcctClient } from './client.ts';
import { ACCT_NEW, readAcctObject } from './codec.ts';

const name = 'ct_state_invalid_dropped_pkts';
/** nfgenmsg, name, packets 258, bytes 65536, use count: as the header file lays an object out. */
const object =
  '00000000' +
  `22000100${Buffer.from(`${name}\0`).toString('hex')}0000` +
  '0c0002000000000000000102' +
  '0c0003000000000000010000' +
  '0800040000000001';

function connect(answer: (message: NetlinkMessage, to: { sequence: number; port: number }) => FakeReply[]) {
  const kernel = new FakeNetlink(([message], { portId }) =>
    message ? answer(message, { sequence: message.sequence, port: portId }) : [],
  );
  return new NetlinkAcctClient(kernel, { clock: new FakeClock() });
}

test('a counter is requested by name and read', async () => {
  const client = connect((message, to) => {
    assert.equal(message.type, 0x701);
    assert.equal(message.flags, 0x5);
    assert.equal(Buffer.from(message.payload()).toString('hex'), object.slice(0, 4 * 2 + 36 * 2));
    return [fakeMessage({ type: ACCT_NEW, ...to }, (w) => w.raw(Buffer.from(object, 'hex'))), fakeAck(to)];
  });
  assert.deepEqual(await client.get(name), { name, packets: 258n, bytes: 65536n });
});

test('a counter is created with REQUEST, CREATE and ACK', async () => {
  const client = connect((message, to) => {
    assert.equal(message.type, 0x700);
    assert.equal(message.flags, 0x405);
    return [fakeAck(to)];
  });
  await client.create(name);
});

test('a missing counter is undefined, other refusals are errors', async () => {
  const ENOENT = 2;
  const EINVAL = 22;
  const EBUSY = 16;
  assert.equal(await connect((_, to) => [fakeAck(to, ENOENT)]).get(name), undefined);
  await assert.rejects(connect((_, to) => [fakeAck(to, EINVAL)]).get(name), { code: 'EINVAL' });
  await assert.rejects(connect((_, to) => [fakeAck(to, EBUSY)]).create(name), { code: 'EBUSY' });
});

test('counter names that the kernel would cut off are refused', async () => {
  for (const bad of ['', 'x'.repeat(32)]) {
    await assert.rejects(connect(() => []).create(bad), /must have 1 to 31 characters/);
  }
});

test('no bytes crash or hang the counter decoder', () => {
  const bytes = Buffer.from(object, 'hex');
  const damage = fc.array(fc.tuple(fc.nat(bytes.length - 1), fc.nat(255)), { maxLength: 6 });
  fc.assert(
    fc.property(damage, (changes) => {
      const damaged = Buffer.from(bytes);
      for (const [at, value] of changes) damaged[at] = value;
      const [message] = readMessages(
        fakeMessage({ type: ACCT_NEW, sequence: 1, port: 1 }, (w) => w.raw(damaged)),
      );
      assert.ok(message);
      try {
        readAcctObject(message);
      } catch (error) {
        if (!(error instanceof NetlinkFormatError)) throw error;
      }
    }),
    { numRuns: 2000 },
  );
});
