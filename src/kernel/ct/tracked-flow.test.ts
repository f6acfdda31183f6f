import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { damaged } from '../../../test/kernel/damaged.ts';
import { FakeNetlink, fakeMessage, overrunError } from '../../../test/kernel/fake-netlink.ts';
import { keyText } from '../../model/address-key.ts';
import { NLM_F_CREATE } from '../netlink/constants.ts';
import { NetlinkFormatError, readMessages } from '../netlink/reader.ts';
import type { MessageWriter } from '../netlink/writer.ts';
import { CT_DELETE, CT_NEW, CTA } from './constants.ts';
import { dropsOf, followFlowsOn } from './events.ts';
import { IPS_OFFLOAD, readTrackedFlow, TCP_ESTABLISHED, TrackedFlow } from './tracked-flow.ts';

const ipv4 = { family: 2, source: [10, 1, 0, 9], destination: [10, 96, 0, 1], answerer: [10, 244, 0, 5] };
const ipv6 = {
  family: 10,
  source: [0xfd, ...new Array<number>(14).fill(0), 9],
  destination: [0xfd, ...new Array<number>(14).fill(0), 1],
  answerer: [0xfd, ...new Array<number>(14).fill(0), 5],
};

function tuple(writer: MessageWriter, type: number, from: number[], to: number[], ports: [number, number]) {
  const offset = from.length === 4 ? 1 : 3;
  const outer = writer.beginNested(type);
  const ip = writer.beginNested(1);
  writer.data(offset, Uint8Array.from(from));
  writer.data(offset + 1, Uint8Array.from(to));
  writer.endNested(ip);
  const proto = writer.beginNested(2);
  writer.u8(1, 6);
  writer.u16Be(2, ports[0]);
  writer.u16Be(3, ports[1]);
  writer.endNested(proto);
  writer.endNested(outer);
}

function counters(writer: MessageWriter, type: number, packets: bigint, bytes: bigint) {
  const nest = writer.beginNested(type);
  writer.u64Be(1, packets);
  writer.u64Be(2, bytes);
  writer.endNested(nest);
}

function event(type: number, { family, source, destination, answerer }: typeof ipv4, flags = 0): Uint8Array {
  return fakeMessage({ type, flags, sequence: 0, port: 0 }, (writer) => {
    writer.nfgenmsg(family);
    tuple(writer, CTA.TUPLE_ORIG, source, destination, [40_000, 80]);
    tuple(writer, CTA.TUPLE_REPLY, answerer, source, [8080, 40_000]);
    writer.u32Be(CTA.STATUS, 0x2e);
    writer.u32Be(CTA.ID, 0xf43e59bc);
    const info = writer.beginNested(CTA.PROTOINFO);
    const tcp = writer.beginNested(1);
    writer.u8(1, 7);
    writer.endNested(tcp);
    writer.endNested(info);
    counters(writer, CTA.COUNTERS_ORIG, 5n, 0x1_0000_0001n);
    counters(writer, CTA.COUNTERS_REPLY, 3n, 400n);
    const time = writer.beginNested(CTA.TIMESTAMP);
    writer.u64Be(1, 1_794_841_477_069_606_000n);
    writer.endNested(time);
  });
}

const figures = {
  protocol: 6,
  sourcePort: 40_000,
  destinationPort: 80,
  answererPort: 8080,
  status: 0x2e,
  id: 0xf43e59bc,
  tcpState: 7,
  isCounted: true,
  packetsOut: 5,
  bytesOut: 0x1_0000_0001,
  packetsBack: 3,
  bytesBack: 400,
};

test('a tracked flow is decoded with its counters, its TCP state and its start', () => {
  for (const [which, addresses] of [
    [ipv4, ['10.1.0.9', '10.96.0.1', '10.244.0.5']],
    [ipv6, ['fd00::9', 'fd00::1', 'fd00::5']],
  ] as const) {
    const flow = new TrackedFlow();
    const [message] = readMessages(event(CT_NEW, which));
    assert.ok(message && readTrackedFlow(message, flow));
    assert.deepEqual([flow.source, flow.destination, flow.answerer].map(keyText), addresses);
    assert.equal(Math.floor(flow.startedAt), 1_794_841_477_069);
    assert.deepEqual({ ...flow, ...figures }, { ...flow });
  }
});

test('a record keeps nothing of the flow before', () => {
  const flow = new TrackedFlow();
  const [first] = readMessages(event(CT_NEW, ipv4));
  assert.ok(first && readTrackedFlow(first, flow));
  const bare = fakeMessage({ type: CT_NEW, sequence: 0, port: 0 }, (writer) => {
    writer.nfgenmsg(2);
    tuple(writer, CTA.TUPLE_ORIG, [1, 2, 3, 4], [5, 6, 7, 8], [1, 2]);
    tuple(writer, CTA.TUPLE_REPLY, [5, 6, 7, 8], [1, 2, 3, 4], [2, 1]);
  });
  const [second] = readMessages(bare);
  assert.ok(second && readTrackedFlow(second, flow));
  const { status, id, tcpState, isCounted, bytesOut, startedAt } = flow;
  assert.deepEqual([status, id, tcpState, isCounted, bytesOut, startedAt], [0, 0, 0, false, 0, 0]);
});

test('a TCP flow on the fast path counts as established: the kernel does not tell its state', () => {
  const stateWith = (status: number) => {
    const flow = new TrackedFlow();
    const entry = fakeMessage({ type: CT_NEW, sequence: 0, port: 0 }, (writer) => {
      writer.nfgenmsg(2);
      tuple(writer, CTA.TUPLE_ORIG, [1, 2, 3, 4], [5, 6, 7, 8], [1, 2]);
      tuple(writer, CTA.TUPLE_REPLY, [5, 6, 7, 8], [1, 2, 3, 4], [2, 1]);
      writer.u32Be(CTA.STATUS, status);
    });
    const [message] = readMessages(entry);
    assert.ok(message && readTrackedFlow(message, flow));
    return flow.tcpState;
  };
  assert.deepEqual([stateWith(0x2e), stateWith(IPS_OFFLOAD | 0x2e)], [0, TCP_ESTABLISHED]);
});

test('no bytes crash or hang the decoder of tracked flows', () => {
  const good = event(CT_NEW, ipv6);
  fc.assert(
    fc.property(damaged(good), (bytes) => {
      try {
        for (const message of readMessages(bytes)) readTrackedFlow(message, new TrackedFlow());
      } catch (error) {
        if (!(error instanceof NetlinkFormatError)) throw error;
      }
    }),
    { numRuns: 3000 },
  );
});

test('a subscription reports openings, closes, ends and the number of lost events', async () => {
  const kernel = new FakeNetlink(undefined, 99);
  let drops = 3;
  const files = {
    read: () => `sk Eth Pid Groups Rmem Wmem Dump Locks Drops Inode\n0 12 99 5 0 0 0 2 ${drops} 1\n`,
    write() {},
  };
  const seen: string[] = [];
  const subscription = followFlowsOn(kernel, files, {
    opened: ({ destination }) => seen.push(`opened ${keyText(destination)}`),
    closed: ({ id }) => seen.push(`closed ${id}`),
    ended: ({ bytesBack }) => seen.push(`ended ${bytesBack}`),
    lost: (count) => seen.push(`lost ${count}`),
    failed: (error) => assert.fail(error),
  });
  assert.deepEqual([...kernel.groups], [1, 3]);
  assert.equal(kernel.filter, undefined);
  subscription.followCloses(true);
  assert.deepEqual([...kernel.groups], [1, 3, 2]);
  assert.ok(kernel.filter);
  kernel.emit(event(CT_NEW, ipv4, NLM_F_CREATE), event(CT_NEW, ipv4));
  subscription.followCloses(false);
  assert.deepEqual([...kernel.groups], [1, 3]);
  kernel.emit(overrunError(), event(CT_DELETE, ipv6));
  const odd = fakeMessage({ type: CT_NEW, sequence: 0, port: 0 }, (writer) => writer.nfgenmsg(2));
  drops = 10;
  kernel.emit(odd, overrunError());
  await subscription.drained();
  subscription.close();
  assert.deepEqual(seen, ['opened 10.96.0.1', 'closed 4097726908', 'lost 3', 'ended 400', 'lost 7']);
  assert.equal(dropsOf(1, files), 0);
});
