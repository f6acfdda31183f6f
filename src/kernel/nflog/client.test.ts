import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { FakeClock } from '../../../test/fake-clock.ts';
import { damaged } from '../../../test/kernel/damaged.ts';
import { FakeNetlink, fakeAck, fakeMessage } from '../../../test/kernel/fake-netlink.ts';
import { keyText } from '../../model/address-key.ts';
import { NetlinkFormatError, readMessages } from '../netlink/reader.ts';
import { openPacketLogOn } from './client.ts';
import { LOG_CONFIG, LOG_PACKET, type LoggedPacket, readLoggedPacket } from './codec.ts';

const ports = [0x9c, 0x40, 0, 80];
const ipv4 = [0x45, 0, 0, 60, 0, 0, 0x40, 0, 64, 6, 0, 0, 10, 1, 0, 9, 10, 96, 0, 2, ...ports];
const ipv6 = [
  ...[0x60, 0, 0, 0, 0, 40, 17, 64],
  ...[0xfd, 0, ...new Array<number>(13).fill(0), 9],
  ...[0xfd, 0, ...new Array<number>(13).fill(0), 2],
  ...ports,
];

function logged(payload: readonly number[], interfaceIndex?: number): Uint8Array {
  return fakeMessage({ type: LOG_PACKET, sequence: 0, port: 0 }, (writer) => {
    writer.nfgenmsg(2);
    if (interfaceIndex !== undefined) writer.u32Be(4, interfaceIndex);
    writer.data(9, Uint8Array.from(payload));
  });
}

function read(datagram: Uint8Array): LoggedPacket | undefined {
  const [message] = readMessages(datagram);
  return message && readLoggedPacket(message);
}

test('addresses, ports and the interface of a logged packet are read', () => {
  const four = read(logged(ipv4, 3));
  assert.ok(four);
  assert.deepEqual([keyText(four.source), keyText(four.destination)], ['10.1.0.9', '10.96.0.2']);
  const { family, protocol, sourcePort, destinationPort, interfaceIndex } = four;
  assert.deepEqual(
    [family, protocol, sourcePort, destinationPort, interfaceIndex],
    ['IPv4', 6, 40_000, 80, 3],
  );
  const six = read(logged(ipv6));
  assert.ok(six);
  assert.deepEqual([keyText(six.source), keyText(six.destination)], ['fd00::9', 'fd00::2']);
  assert.deepEqual([six.protocol, six.destinationPort, six.interfaceIndex], [17, 80, 0]);
});

test('a packet without ports, a later fragment and a packet that is cut off are left out', () => {
  assert.equal(read(logged(ipv4.with(9, 1))), undefined);
  assert.equal(read(logged(ipv4.with(7, 5))), undefined);
  assert.equal(read(logged(ipv4.slice(0, 22))), undefined);
  assert.equal(read(logged(ipv6.slice(0, 42))), undefined);
  assert.equal(read(logged([])), undefined);
});

test('no bytes crash or hang the decoder of logged packets', () => {
  const good = logged(ipv4, 3);
  fc.assert(
    fc.property(damaged(good), (bytes) => {
      try {
        read(bytes);
      } catch (error) {
        if (!(error instanceof NetlinkFormatError)) throw error;
      }
    }),
    { numRuns: 3000 },
  );
});

test('a log takes a group that is free, and delivers its packets', async () => {
  const EBUSY = 16;
  let requests = 0;
  const kernel = new FakeNetlink(([request], { portId }) => {
    assert.equal(request?.type, LOG_CONFIG);
    const to = { sequence: request?.sequence ?? 0, port: portId };
    return [fakeAck(to, requests++ === 0 ? EBUSY : 0)];
  });
  const seen: number[] = [];
  const randoms = [0.25, 0.5];
  const log = await openPacketLogOn(
    kernel,
    { clock: new FakeClock(), random: () => randoms.shift() ?? 0 },
    {
      packet: ({ destinationPort }) => seen.push(destinationPort),
      overrun: () => assert.fail(),
      failed: (error) => assert.fail(error),
    },
  );
  assert.equal(log.group, 40_000);
  kernel.emit(logged(ipv4));
  assert.deepEqual(seen, [80]);
  log.close();
  assert.ok(kernel.closed);
});
