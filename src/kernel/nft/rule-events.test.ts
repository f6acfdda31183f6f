import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { damaged } from '../../../test/kernel/damaged.ts';
import { FakeNetlink, fakeMessage, overrunError } from '../../../test/kernel/fake-netlink.ts';
import { ignorePorts } from '../netlink/filter.ts';
import type { MessageWriter } from '../netlink/writer.ts';
import {
  messageType,
  NFNLGRP_NFTABLES,
  NFT_MSG,
  NFTA_CHAIN,
  NFTA_GEN,
  NFTA_RULE,
  NFTA_TABLE,
} from './constants.ts';
import { subscribeRules } from './rule-events.ts';

function fixture() {
  const kernel = new FakeNetlink();
  const seen: string[] = [];
  const subscription = subscribeRules(kernel, {
    event: ({ port, family, type, kind, table, chain }) =>
      void seen.push([port, family, kind, type, table, chain].join(' ')),
    committed: (port, { processName, pid }) => void seen.push(`${port} committed ${processName}[${pid}]`),
    overrun: () => void seen.push('overrun'),
    failed: (error) => void seen.push(`failed ${error.message}`),
  });
  return { kernel, seen, subscription };
}

const ruleHandle = 3;

type Kind = (typeof NFT_MSG)[keyof typeof NFT_MSG];

function notification(kind: Kind, family: number, write: (writer: MessageWriter) => void): Uint8Array {
  return fakeMessage({ type: messageType(kind), sequence: 0, port: 42 }, (writer) => {
    writer.nfgenmsg(family);
    write(writer);
  });
}

const ruleOf = (kind: Kind, family: number) =>
  notification(kind, family, (writer) => {
    writer.string(NFTA_RULE.TABLE, 'nat');
    writer.string(NFTA_RULE.CHAIN, 'KUBE-SERVICES');
    writer.u64Be(ruleHandle, 7n);
  });

test('rule events have table and chain, and the program that committed', () => {
  const { kernel, seen } = fixture();
  assert.deepEqual([...kernel.groups], [NFNLGRP_NFTABLES]);
  kernel.emit(
    notification(NFT_MSG.DELTABLE, 2, (writer) => writer.string(NFTA_TABLE.NAME, 'nat')),
    notification(NFT_MSG.NEWCHAIN, 10, (writer) => {
      writer.string(NFTA_CHAIN.TABLE, 'filter');
      writer.string(NFTA_CHAIN.NAME, 'KUBE-FORWARD');
    }),
    ruleOf(NFT_MSG.NEWRULE, 2),
    ruleOf(NFT_MSG.DELRULE, 2),
    notification(NFT_MSG.NEWGEN, 0, (writer) => {
      writer.u32Be(NFTA_GEN.ID, 9);
      writer.u32Be(NFTA_GEN.PROC_PID, 4242);
      writer.string(NFTA_GEN.PROC_NAME, 'iptables-restor');
    }),
  );
  assert.deepEqual(seen, [
    '42 IPv4 table deleted nat ',
    '42 IPv6 chain added filter KUBE-FORWARD',
    '42 IPv4 rule added nat KUBE-SERVICES',
    '42 IPv4 rule deleted nat KUBE-SERVICES',
    '42 committed iptables-restor[4242]',
  ]);
});

test('rule events of other families and other kinds of objects are ignored', () => {
  const { kernel, seen } = fixture();
  kernel.emit(ruleOf(NFT_MSG.NEWRULE, 1), ruleOf(NFT_MSG.NEWSET, 2));
  assert.deepEqual(seen, []);
});

test('lost and unreadable rule events are reported as overrun', () => {
  const { kernel, seen, subscription } = fixture();
  kernel.emit(overrunError());
  kernel.emit(notification(NFT_MSG.NEWRULE, 2, () => {}));
  assert.deepEqual(seen, ['overrun', 'overrun']);
  const filter = ignorePorts([1, 2]);
  subscription.attachFilter(filter);
  assert.equal(kernel.filter, filter);
  subscription.close();
  assert.equal(kernel.watchers, 0);
});

test('no bytes crash or hang the rule event decoder', () => {
  const whole = ruleOf(NFT_MSG.NEWRULE, 2);
  fc.assert(
    fc.property(damaged(whole), (bytes) => {
      const { kernel, seen } = fixture();
      kernel.emit(bytes);
      assert.ok(!seen.some((line) => line.startsWith('failed')), seen.join());
    }),
    { numRuns: 2000 },
  );
});

test('a socket filter drops the messages of the given ports and no others', () => {
  const verdict = (ports: readonly number[], port: number) => {
    const view = new DataView(ignorePorts(ports).buffer);
    let accumulator = 0;
    for (let at = 0; ; at++) {
      const [code, ifTrue, ifFalse] = [
        view.getUint16(at * 8, true),
        view.getUint8(at * 8 + 2),
        view.getUint8(at * 8 + 3),
      ];
      const operand = view.getUint32(at * 8 + 4, true);
      if (code === 0x20) accumulator = swapped(port);
      else if (code === 0x15) at += accumulator === operand ? ifTrue : ifFalse;
      else return operand !== 0;
    }
  };
  const port = fc.integer({ min: 1, max: 0xffffffff });
  fc.assert(
    fc.property(fc.array(port, { maxLength: 20 }), port, (ports, other) => {
      for (const each of ports) assert.equal(verdict(ports, each), false);
      assert.equal(verdict(ports, other), !ports.includes(other));
    }),
  );
  assert.throws(() => ignorePorts(Array(201).fill(1)), RangeError);
});

/** The word that a filter loads in network byte order on a little-endian machine. */
function swapped(port: number): number {
  const view = new DataView(new ArrayBuffer(4));
  view.setUint32(0, port, true);
  return view.getUint32(0);
}
