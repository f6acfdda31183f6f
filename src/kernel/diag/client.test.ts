import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FakeClock } from '../../../test/fake-clock.ts';
import { FakeNetlink, fakeAck } from '../../../test/kernel/fake-netlink.ts';
import { NetlinkSocketClient } from './client.ts';
import type { SocketAddresses } from './codec.ts';

const v4: SocketAddresses = {
  family: 'IPv4',
  source: Uint8Array.of(192, 0, 2, 1),
  sourcePort: 0x1234,
  destination: Uint8Array.of(10, 96, 0, 1),
  destinationPort: 80,
};
const v6: SocketAddresses = {
  ...v4,
  family: 'IPv6',
  source: new Uint8Array(16).fill(1),
  destination: new Uint8Array(16).fill(2),
};

/** Answers the requests with these errno numbers, in order. */
function connect(...errnos: number[]) {
  const bodies: string[] = [];
  const kernel = new FakeNetlink((messages, { portId: port }) =>
    messages.map((message) => {
      assert.equal(message.type, 21);
      bodies.push(Buffer.from(message.payload()).toString('hex'));
      return fakeAck({ sequence: message.sequence, port }, errnos.shift() ?? 0);
    }),
  );
  return { client: new NetlinkSocketClient(kernel, { clock: new FakeClock() }), bodies };
}

test('a socket is named by family, TCP, ports and addresses, without a cookie', async () => {
  const { client, bodies } = connect();
  assert.equal(await client.destroyTCP([v4, v6]), 2);
  const rest = '00000000ffffffffffffffff';
  assert.deepEqual(bodies, [
    `02060000ffffffff12340050c0000201${'0'.repeat(24)}0a600001${'0'.repeat(24)}${rest}`,
    `0a060000ffffffff12340050${'01'.repeat(16)}${'02'.repeat(16)}${rest}`,
  ]);
});

test('sockets that do not exist do not count; any other refusal is an error', async () => {
  const ENOENT = 2;
  const EOPNOTSUPP = 95;
  assert.equal(await connect(ENOENT, 0).client.destroyTCP([v4, v6]), 1);
  await assert.rejects(connect(0, EOPNOTSUPP).client.destroyTCP([v4, v6]), { code: 'EOPNOTSUPP' });
});
