import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FakeClock } from '../../test/fake-clock.ts';
import {
  FakeNetlink,
  type FakeReply,
  fakeAck,
  fakeDone,
  fakeMessage,
  overrunError,
} from '../../test/kernel/fake-netlink.ts';
import { NetlinkConntrackClient } from '../kernel/ct/client.ts';
import { CT_DELETE, CT_GET, CT_NEW, CTA } from '../kernel/ct/constants.ts';
import { IPS_ASSURED, IPS_OFFLOAD } from '../kernel/ct/tracked-flow.ts';
import { NLM_F_DUMP_INTR } from '../kernel/netlink/constants.ts';
import type { NetlinkMessage } from '../kernel/netlink/reader.ts';
import type { MessageWriter } from '../kernel/netlink/writer.ts';
import type { Family } from '../model/ip.ts';
import { silentLogger } from '../obs/log.ts';
import { kernelFlowTable } from './kernel-table.ts';
import { ConntrackReconciler } from './reconciler.ts';
import type { Scope, UDPFlow } from './udp-targets.ts';

const unknownFacts = () => ({ ordinary: undefined, stream: undefined });
const EINTR = 4;
const EPERM = 1;
const EBUSY = 16;
const serving = new Set(['10.1.0.5:53']);

/** Faults of a dump; the entries of its only datagram arrive nevertheless. */
type Fault = 'interrupted' | 'refused' | 'overrun' | 'failed';

/** A conntrack table of flows to 10.96.0.10:53, given by the last byte of the answering address; it can have faults. */
class Table {
  flows: number[] = [];
  faults: Fault[] = [];
  refusesToDelete = false;
  /** Odd flows are on the fast path, and the kernel does not delete their entries. */
  hasFastPath = false;
  /** Each flow had packets in both directions for some time. */
  areAssured = false;
  walks = 0;
  /** Numbers of the deleted flows. */
  readonly deleted = new Set<number>();

  open(): FakeNetlink {
    return new FakeNetlink((messages, { portId }) => {
      const [first] = messages;
      const to = { sequence: first?.sequence ?? 0, port: portId };
      if (first?.type === CT_GET) return this.#walk(to);
      return messages.map((message) => this.#delete(message, { ...to, sequence: message.sequence }));
    });
  }

  #walk(to: { sequence: number; port: number }): FakeReply[] {
    this.walks++;
    const fault = this.faults.shift();
    const flags = fault === 'interrupted' ? NLM_F_DUMP_INTR : 0;
    const entries = this.flows.map((answerer, i) =>
      fakeMessage({ type: CT_NEW, flags, ...to }, (writer) => {
        writeEntry(writer, i, answerer);
        if (this.hasFastPath && i % 2 === 1) writer.u32Be(CTA.STATUS, IPS_OFFLOAD);
        if (this.areAssured) writer.u32Be(CTA.STATUS, IPS_ASSURED);
      }),
    );
    if (fault === 'refused') return [fakeDone(to, EINTR)];
    if (fault === 'failed') return [...entries.slice(0, 1), fakeDone(to, EPERM)];
    return [...(fault === 'overrun' ? [overrunError()] : entries), fakeDone(to)];
  }

  /** The number of the flow is the client's port. */
  #delete(message: NetlinkMessage, to: { sequence: number; port: number }): Uint8Array {
    assert.equal(message.type, CT_DELETE);
    if (this.refusesToDelete) return fakeAck(to, EPERM);
    const payload = Buffer.from(message.payload());
    const number = payload.readUInt16BE(payload.indexOf(Uint8Array.of(6, 0, 2, 0)) + 4);
    if (this.hasFastPath && number % 2 === 1) return fakeAck(to, EBUSY);
    this.deleted.add(number);
    return fakeAck(to);
  }
}

function writeEntry(writer: MessageWriter, clientPort: number, answerer: number): void {
  writer.nfgenmsg(2);
  writer.u32Be(7, clientPort);
  const tuples = [
    [1, [10, 2, 0, 1], [10, 96, 0, 10], clientPort, 53],
    [2, [10, 1, 0, answerer], [10, 2, 0, 1], 53, clientPort],
  ] as const;
  for (const [type, source, destination, sourcePort, destinationPort] of tuples) {
    const tuple = writer.beginNested(type);
    const ip = writer.beginNested(1);
    writer.data(1, Uint8Array.from(source));
    writer.data(2, Uint8Array.from(destination));
    writer.endNested(ip);
    const proto = writer.beginNested(2);
    writer.u8(1, 17);
    writer.u16Be(2, sourcePort);
    writer.u16Be(3, destinationPort);
    writer.endNested(proto);
    writer.endNested(tuple);
  }
}

function reconcile(table: Table) {
  const clock = new FakeClock(0);
  const client = new NetlinkConntrackClient(() => table.open(), { clock });
  const state = { passes: 0, deleted: 0, errors: [] as string[] };
  const reconciler = new ConntrackReconciler({
    family: 'IPv4',
    table: kernelFlowTable(client, 'IPv4', unknownFacts),
    ownAddresses: async () => new Set(),
    duration: { observe: () => state.passes++ },
    deleted: {
      inc: (_labels, by = 1) => {
        state.deleted += by;
      },
    },
    clock,
    logger: { ...silentLogger, error: (error) => void state.errors.push(String(error)) },
  });
  reconciler.update('a/dns/UDP', {
    addresses: ['10.96.0.10'],
    port: 53,
    nodePort: 0,
    serving,
    answersAfterLeaving: true,
  });
  reconciler.reconcile();
  return { clock, state, reconciler };
}

for (const fault of ['interrupted', 'refused', 'overrun'] as const) {
  test(`a dump that is ${fault} restarts and misses nothing`, async () => {
    const table = new Table();
    table.flows = [5, 9, 5, 8];
    table.faults = [fault, fault];
    const { clock, state } = reconcile(table);
    await clock.advance(100);
    await settled(() => state.passes > 0);
    assert.deepEqual([...table.deleted], [1, 3]);
    assert.equal(table.walks, 3);
    assert.deepEqual(state.errors, []);
    assert.equal(clock.pending, 0);
  });
}

test('a dump that is interrupted every time is tried again later', async () => {
  const table = new Table();
  table.flows = [9];
  table.faults = Array.from({ length: 10 }, () => 'refused');
  const { clock, state } = reconcile(table);
  await clock.advance(4_000);
  await settled(() => state.errors.length > 0);
  assert.match(state.errors[0] ?? '', /EINTR/);
  assert.deepEqual([table.walks, state.passes], [10, 0]);
  await clock.advance(5000);
  await settled(() => state.passes > 0);
  assert.deepEqual([...table.deleted], [0]);
});

test('entries found before a dump failed are deleted', async () => {
  const table = new Table();
  table.flows = [9, 8];
  table.faults = ['failed'];
  const { state } = reconcile(table);
  await settled(() => state.errors.length === 1);
  assert.ok(state.deleted > 0);
  assert.equal(state.passes, 0);
});

test('a failed dump and failed deletions are tried again later', async () => {
  const table = new Table();
  table.flows = [9, 8];
  table.faults = ['failed'];
  table.refusesToDelete = true;
  const { clock, state } = reconcile(table);
  await settled(() => state.errors.length === 1);
  await clock.advance(5000);
  await settled(() => state.errors.length === 2);
  assert.match(state.errors[1] ?? '', /2 entries could not be deleted: .*EPERM/);
  assert.deepEqual([state.deleted, state.passes], [0, 0]);
  table.refusesToDelete = false;
  await clock.advance(5000);
  await settled(() => state.passes > 0);
  assert.deepEqual([...table.deleted], [0, 1]);
  assert.equal(state.deleted, 2);
});

test('entries of flows on the fast path are deleted while there is no fast path', async () => {
  const table = new Table();
  table.flows = [9, 9, 5, 9, 9];
  table.hasFastPath = true;
  const client = new NetlinkConntrackClient(() => table.open(), { clock: new FakeClock() });
  let pauses = 0;
  const withoutFastPath = async (work: () => Promise<void>) => {
    pauses++;
    assert.deepEqual([...table.deleted], [0, 4]);
    table.hasFastPath = false;
    await work();
  };
  const sweep = { isStale: ({ answererIP }: UDPFlow) => answererIP === '10.1.0.9', onDeleted: () => {} };
  await kernelFlowTable(client, 'IPv4', unknownFacts, withoutFastPath).sweep(sweep);
  assert.deepEqual([...table.deleted], [0, 4, 1, 3]);
  await kernelFlowTable(client, 'IPv4', unknownFacts, withoutFastPath).sweep(sweep);
  assert.equal(pauses, 1);
  table.hasFastPath = true;
  await assert.rejects(kernelFlowTable(client, 'IPv4', unknownFacts).sweep(sweep), /2 entries .*EBUSY/);
});

test('stale entries are deleted during the dump, so that few are in memory', async () => {
  const table = new Table();
  table.flows = Array.from({ length: 5000 }, (_, i) => (i % 2 ? 5 : 9));
  const client = new NetlinkConntrackClient(() => table.open(), { clock: new FakeClock() });
  let found = 0;
  let mostHeld = 0;
  await kernelFlowTable(client, 'IPv4', unknownFacts).sweep({
    isStale: ({ answererIP }) => {
      const isStale = answererIP === '10.1.0.9';
      if (isStale) found++;
      mostHeld = Math.max(mostHeld, found - table.deleted.size);
      return isStale;
    },
    onDeleted: () => {},
  });
  assert.equal(table.deleted.size, 2500);
  assert.equal(table.walks, 1);
  assert.ok(mostHeld <= 300, `${mostHeld} were held`);
});

test('a flow is quiet when its time-out was last renewed some seconds ago', async () => {
  const table = new Table();
  table.flows = Array.from({ length: 40 }, () => 9);
  const client = new NetlinkConntrackClient(() => table.open(), { clock: new FakeClock() });
  const quiet = async (ordinary: number | undefined) => {
    let count = 0;
    await kernelFlowTable(client, 'IPv4', () => ({ ordinary, stream: undefined })).sweep({
      isStale: ({ isQuiet }) => {
        if (isQuiet) count++;
        return false;
      },
      onDeleted: () => {},
    });
    return count;
  };
  // The number of a flow is also the rest of its time-out.
  assert.equal(await quiet(30), 28);
  assert.equal(await quiet(undefined), 0);
  table.hasFastPath = true;
  assert.equal(await quiet(30), 14);
});

test('a flow with packets in both directions for some time is quiet by a time-out of its own', async () => {
  const table = new Table();
  table.flows = Array.from({ length: 130 }, () => 9);
  const client = new NetlinkConntrackClient(() => table.open(), { clock: new FakeClock() });
  const quiet = async () => {
    let count = 0;
    await kernelFlowTable(client, 'IPv4', () => ({ ordinary: 30, stream: 120 })).sweep({
      isStale: ({ isQuiet }) => {
        if (isQuiet) count++;
        return false;
      },
      onDeleted: () => {},
    });
    return count;
  };
  // The number of a flow is also the rest of its time-out.
  assert.equal(await quiet(), 28);
  table.areAssured = true;
  assert.equal(await quiet(), 118);
});

test('one walk serves all changed frontends and node ports, unless the kernel can skip many entries', async () => {
  const scopes = [
    { destinationIP: '10.96.0.10', destinationPort: 53 },
    { destinationIP: '10.96.0.11', destinationPort: 53 },
    { destinationPort: 30053 },
  ];
  const walks = async (family: Family, places: readonly Scope[], entries: number) => {
    const table = new Table();
    const client = new NetlinkConntrackClient(() => table.open(), { clock: new FakeClock() });
    await kernelFlowTable(client, family, () => ({ ...unknownFacts(), entries })).sweep({
      scopes: places,
      isStale: () => false,
      onDeleted() {},
    });
    return table.walks;
  };
  assert.equal(await walks('IPv4', scopes, 10_000), 1);
  assert.equal(await walks('IPv4', scopes, 100_000), 3);
  assert.equal(await walks('IPv4', scopes.slice(1, 2), 0), 1);
  const inIPv6 = scopes.map(({ destinationIP, destinationPort }) =>
    destinationIP === undefined
      ? { destinationPort }
      : { destinationIP: `fd00::${destinationIP}`, destinationPort },
  );
  assert.equal(await walks('IPv6', inIPv6, 10_000), 1);
  assert.equal(await walks('IPv6', inIPv6, 100_000), 2);
});

async function settled(holds: () => boolean): Promise<void> {
  for (let i = 0; i < 1000 && !holds(); i++) await new Promise((resolve) => setImmediate(resolve));
  assert.ok(holds());
}
