import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import fc from 'fast-check';
import { FakeClock } from '../../../test/fake-clock.ts';
import {
  FakeNetlink,
  type FakeReply,
  fakeAck,
  fakeDone,
  fakeMessage,
} from '../../../test/kernel/fake-netlink.ts';
import { NLM_F_DUMP_INTR } from '../netlink/constants.ts';
import { NetlinkFormatError, type NetlinkMessage, readMessages } from '../netlink/reader.ts';
import { MessageWriter } from '../netlink/writer.ts';
import { NetlinkConntrackClient } from './client.ts';
import { readFlow } from './codec.ts';
import { CT_DELETE, CT_GET, CT_NEW } from './constants.ts';
import type { Flow, FlowFilter } from './flow.ts';

const UDP = 17;

/** A UDP entry to 10.96.0.10:53 that 10.244.1.5:5353 answers, as a 6.18 kernel reported it. */
const recorded = [
  '0200000034000180140001800800010004030201080002000a60000a1c0002800500010011000000060002008bca0000',
  '06000300003500003400028014000180080001000af4010508000200040302011c000280050001001100000006000200',
  '14e90000060003008bca000006001200000700000800030000000008080008000000400008000c00f43e59bc08000b00',
  '0000000108000700000000631c001880080001000000000008000200000000000800030000000000',
].join('');

const flow: Flow = {
  family: 'IPv4',
  protocol: UDP,
  original: tuple([4, 3, 2, 1], 35786, [10, 96, 0, 10], 53),
  reply: tuple([10, 244, 1, 5], 5353, [4, 3, 2, 1], 35786),
  status: 0x8,
  tcpState: 0,
  timeout: 99,
  mark: 0x4000,
  zone: 7,
  id: 0xf43e59bc,
};

test('a conntrack entry is decoded', () => {
  assert.deepEqual(readFlow(entry(Buffer.from(recorded, 'hex'))), flow);
});

test('conntrack entries without addresses are refused, those of other families ignored', () => {
  assert.throws(() => readFlow(entry(Uint8Array.of(2, 0, 0, 0))), NetlinkFormatError);
  assert.equal(readFlow(entry(Uint8Array.of(7, 0, 0, 0))), undefined);
});

test('no bytes crash or hang the conntrack decoder', () => {
  const damaged = fc.array(fc.tuple(fc.nat(Buffer.from(recorded, 'hex').length - 1), fc.nat(255)), {
    maxLength: 6,
  });
  fc.assert(
    fc.property(damaged, (changes) => {
      const bytes = Buffer.from(recorded, 'hex');
      for (const [at, value] of changes) bytes[at] = value;
      try {
        readFlow(entry(bytes));
      } catch (error) {
        if (!(error instanceof NetlinkFormatError)) throw error;
      }
    }),
    { numRuns: 3000 },
  );
});

suite('walking', () => {
  test('a walk sends its filter to the kernel', async () => {
    const requests: string[] = [];
    const filters: FlowFilter[] = [
      { family: 'IPv6' },
      { family: 'IPv4', protocol: UDP },
      {
        family: 'IPv4',
        protocol: UDP,
        originalDestinationPort: 53,
        originalDestination: Uint8Array.of(10, 96, 0, 10),
      },
      { family: 'IPv4', mark: { value: 0x4000, mask: 0xc000 } },
    ];
    const { client } = connect(([message], to) => {
      assert.equal(message?.type, CT_GET);
      requests.push(Buffer.from(message?.payload() ?? []).toString('hex'));
      return [fakeDone(to)];
    });
    for (const filter of filters)
      await client.forEachFlow(filter, { flow: () => assert.fail(), restart: () => assert.fail() });
    assert.deepEqual(requests, [
      '0a000000',
      '02000000' + '10000180' + '0c000280' + '0500010011000000' + '0c001980' + '0800010008000000',
      '02000000' +
        '24000180' +
        '0c000180' +
        '080002000a60000a' +
        '14000280' +
        '0500010011000000' +
        '0600030000350000' +
        '0c001980' +
        '080001002a000000',
      '02000000' + '0800080000004000' + '080015000000c000',
    ]);
    assert.throws(
      () => client.forEachFlow({ family: 'IPv4', originalDestinationPort: 1 }, { flow() {}, restart() {} }),
      /must name the protocol/,
    );
  });

  test('a walk passes on only flows that match, even if the kernel ignored the filter', async () => {
    const { client } = connect((_, to) => [message(to), fakeDone(to)]);
    const count = async (filter: FlowFilter) => {
      let flows = 0;
      await client.forEachFlow(filter, { flow: () => flows++, restart: () => assert.fail() });
      return flows;
    };
    assert.equal(await count({ family: 'IPv4' }), 1);
    assert.equal(await count({ family: 'IPv6' }), 0);
    assert.equal(await count({ family: 'IPv4', protocol: 6 }), 0);
    assert.equal(await count({ family: 'IPv4', protocol: UDP, originalDestinationPort: 53 }), 1);
    assert.equal(await count({ family: 'IPv4', protocol: UDP, originalDestinationPort: 54 }), 0);
    assert.equal(await count({ family: 'IPv4', originalDestination: Uint8Array.of(10, 96, 0, 10) }), 1);
    assert.equal(await count({ family: 'IPv4', originalDestination: Uint8Array.of(10, 96, 0, 11) }), 0);
    assert.equal(await count({ family: 'IPv4', mark: { value: 0x4000, mask: 0xc000 } }), 1);
    assert.equal(await count({ family: 'IPv4', mark: { value: 0, mask: 0x4000 } }), 0);
  });

  test('a disturbed walk starts again, up to ten attempts', async () => {
    const { client, clock } = connect((_, to) => [message(to, NLM_F_DUMP_INTR), fakeDone(to)]);
    const log: string[] = [];
    const visitor = { flow: () => void log.push('flow'), restart: () => void log.push('restart') };
    const failed = assert.rejects(client.forEachFlow({ family: 'IPv4' }, visitor), /EINTR/);
    await clock.advance(4_000);
    await failed;
    assert.equal(log.join(' '), `flow${' restart flow'.repeat(9)}`);
  });
});

suite('deleting', () => {
  test('a deletion identifies the entry by tuple, zone and id', async () => {
    let request: NetlinkMessage | undefined;
    const { client } = connect(([first], to) => {
      request = first;
      return [fakeAck(to)];
    });
    assert.deepEqual(await client.deleteFlows([flow]), { deleted: 1, failures: [] });
    assert.equal(request?.type, CT_DELETE);
    const tupleHex = recorded.slice(8, 8 + 104);
    const expected = `02000000${tupleHex}060012000007000008000c00f43e59bc`;
    assert.equal(Buffer.from(request?.payload() ?? []).toString('hex'), expected);
  });

  test('deleting counts missing entries as deleted and reports other refusals', async () => {
    const { client, kernel } = connect((messages, { port }) =>
      messages.map(({ sequence }) => fakeAck({ sequence, port }, [0, 2, 1][sequence % 3])),
    );
    const flows = Array.from({ length: 600 }, (_, i) => ({ ...flow, id: i }));
    const result = await client.deleteFlows(flows);
    assert.equal(result.deleted, 400);
    assert.equal(result.failures.length, 200);
    assert.equal(result.failures[0]?.error.code, 'EPERM');
    assert.equal(result.failures[0]?.flow, flows[1]);
    assert.equal(kernel.sent.length, 2);
  });
});

function connect(
  answer: (request: readonly NetlinkMessage[], to: { sequence: number; port: number }) => FakeReply[],
) {
  const kernel = new FakeNetlink((request, { portId }) =>
    answer(request, { sequence: request[0]?.sequence ?? 0, port: portId }),
  );
  const clock = new FakeClock();
  return { kernel, clock, client: new NetlinkConntrackClient(() => kernel, { clock }) };
}

function message(to: { sequence: number; port: number }, flags = 0): Uint8Array {
  return fakeMessage({ type: CT_NEW, flags, ...to }, (w) => w.raw(Buffer.from(recorded, 'hex')));
}

function entry(payload: Uint8Array): NetlinkMessage {
  const writer = new MessageWriter();
  writer.beginMessage(CT_NEW, 0, 1);
  writer.raw(payload);
  writer.endMessage();
  const [read] = readMessages(writer.bytes());
  assert.ok(read);
  return read;
}

function tuple(source: number[], sourcePort: number, destination: number[], destinationPort: number) {
  return {
    source: Uint8Array.from(source),
    destination: Uint8Array.from(destination),
    sourcePort,
    destinationPort,
  };
}
