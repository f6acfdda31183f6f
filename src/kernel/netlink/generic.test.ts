import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FakeClock } from '../../../test/fake-clock.ts';
import { FakeNetlink, type FakeReply, fakeAck, fakeMessage } from '../../../test/kernel/fake-netlink.ts';
import { genericCommand, resolveFamily } from './generic.ts';
import { NetlinkFormatError, readMessages } from './reader.ts';
import { NetlinkSocket } from './socket.ts';
import type { MessageWriter } from './writer.ts';

const GENL_ID_CTRL = 16;

test('a generic netlink family is resolved by name', async () => {
  const { socket, kernel } = connect((to) => [
    fakeMessage({ type: GENL_ID_CTRL, ...to }, (writer) => {
      writer.raw(Uint8Array.of(1, 2, 0, 0));
      writer.string(2, 'IPVS');
      writer.u16(1, 32);
    }),
    fakeAck(to),
  ]);
  assert.equal(await resolveFamily(socket, 'IPVS'), 32);
  const [request] = readMessages(kernel.sent[0] ?? new Uint8Array());
  const payload = Buffer.from(request?.payload() ?? []).toString('hex');
  assert.equal(payload, '03020000' + '090002004950565300000000');
});

test('an unknown generic netlink family resolves to undefined', async () => {
  const { socket } = connect((to) => [fakeAck(to, 2)]);
  assert.equal(await resolveFamily(socket, 'IPVS'), undefined);
});

test('other refusals of a family lookup, and answers without a number, are errors', async () => {
  const refusing = connect((to) => [fakeAck(to, 1)]);
  await assert.rejects(resolveFamily(refusing.socket, 'IPVS'), /finding generic netlink family IPVS: EPERM/);
  const header = (writer: MessageWriter) => writer.raw(Uint8Array.of(1, 2, 0, 0));
  const vague = connect((to) => [fakeMessage({ type: GENL_ID_CTRL, ...to }, header), fakeAck(to)]);
  await assert.rejects(resolveFamily(vague.socket, 'IPVS'), /gave family IPVS no number/);
});

test('a generic message without a header is refused', () => {
  const [message] = readMessages(fakeMessage({ type: 32, sequence: 1, port: 1 }));
  assert.ok(message);
  assert.throws(() => genericCommand(message), NetlinkFormatError);
});

function connect(answer: (to: { sequence: number; port: number }) => FakeReply[]) {
  const kernel = new FakeNetlink(([request], { portId }) =>
    answer({ sequence: request?.sequence ?? 0, port: portId }),
  );
  return { kernel, socket: new NetlinkSocket(kernel, { clock: new FakeClock() }) };
}
