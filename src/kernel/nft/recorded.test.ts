import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { suite, test } from 'node:test';
import { declaredSets, setInfo } from '../../../test/kernel/nft-declared-sets.ts';
import { type NetlinkMessage, readMessages } from '../netlink/reader.ts';
import { NftBatch } from './batch.ts';
import { elementIndexAt, readElementListRef, readElements } from './codec/element.ts';
import { readFlowtable } from './codec/flowtable.ts';
import { readChain, readCounterObject, readRule, readTable } from './codec/objects.ts';
import { readSet } from './codec/set.ts';
import { messageKind, NFT_MSG } from './constants.ts';

/** Messages of nft 1.0.6 are decoded, written again by this program, and compared byte by byte. */

const ip = recording('ip.hex');
const ip6 = recording('ip6.hex');
const flowtable = recording('flowtable.hex');

suite('rules', () => {
  for (const [name, messages] of [
    ['ip', ip],
    ['ip6', ip6],
    ['flowtable', flowtable],
  ] as const) {
    for (const [i, message] of ofKind(messages, NFT_MSG.NEWRULE).entries()) {
      const rule = readRule(message);
      const kinds = rule.exprs.map(({ kind }) => kind);
      test(`${name} rule ${i}: ${kinds.join(' ')}`, () => {
        assert.ok(!kinds.includes('unknown'));
        const written = only(new NftBatch().add('rule', rule));
        assert.deepEqual(readRule(written), rule);
        if (!isSentWithRedundantDetail(message)) assert.equal(hex(written), hex(message));
      });
    }
  }

  test('all but four rules are compared byte by byte', () => {
    const all = [...ofKind(ip, NFT_MSG.NEWRULE), ...ofKind(ip6, NFT_MSG.NEWRULE)];
    assert.equal(all.filter(isSentWithRedundantDetail).length, 4);
    assert.equal(all.length, 37);
  });
});

suite('elements', () => {
  for (const message of [...ofKind(ip, NFT_MSG.NEWSETELEM), ...ofKind(ip6, NFT_MSG.NEWSETELEM)]) {
    const set = readElementListRef(message);
    const elements = readElements(message);
    test(`${set.table.family} ${set.name}: ${elements.length} elements`, () => {
      const written = only(new NftBatch().addElements(set, elements));
      assert.ok(elements.length > 0);
      assert.deepEqual(readElements(written), elements);
      // nft numbers the elements of a list and adds the set's id; the kernel ignores both.
      assert.equal(written.length + 8, message.length);
    });
  }

  test('intervals, verdicts, timeouts and comments are decoded', () => {
    const [endpoints, frontends, aff, ranges, cidrs] = ofKind(ip, NFT_MSG.NEWSETELEM).map(readElements);
    assert.equal(endpoints?.[1]?.comment, 'svc');
    assert.deepEqual(frontends?.[0]?.verdict, { kind: 'goto', chain: 'pick-2' });
    assert.deepEqual([aff?.[0]?.timeoutMs, aff?.[0]?.expiresMs], [10_000, 5_000]);
    assert.deepEqual(ranges?.[0]?.keyEnd?.slice(-4), Uint8Array.of(10, 255, 255, 255));
    assert.deepEqual(
      cidrs?.map((e) => [Buffer.from(e.key).toString('hex'), e.intervalEnd ?? false]),
      [
        ['00000000', true],
        ['0a600000', false],
        ['0a610000', true],
        ['0a620000', false],
        ['0a630000', true],
      ],
    );
  });
});

suite('sets', () => {
  const recorded = [...ofKind(ip, NFT_MSG.NEWSET), ...ofKind(ip6, NFT_MSG.NEWSET)];
  for (const set of declaredSets()) {
    const { family } = set.table;
    const message = recorded.find((m) => readSet(m).name === set.name && readSet(m).table.family === family);
    test(`${family} ${set.name} is declared as nft declares it`, () => {
      assert.ok(message);
      const written = only(new NftBatch().add('set', set));
      assert.equal(hex(written), hex(message));
      assert.deepEqual(readSet(written), setInfo(set));
    });
  }
});

test('tables, chains and counters are written as nft writes them', () => {
  const [table] = ofKind(ip, NFT_MSG.NEWTABLE);
  assert.ok(table);
  assert.equal(hex(only(new NftBatch().add('table', readTable(table)))).slice(16), hex(table).slice(16));
  for (const message of [...ofKind(ip, NFT_MSG.NEWCHAIN), ...ofKind(ip6, NFT_MSG.NEWCHAIN)]) {
    assert.equal(hex(only(new NftBatch().add('chain', readChain(message)))), hex(message));
  }
  for (const message of [...ofKind(ip, NFT_MSG.NEWOBJ), ...ofKind(ip6, NFT_MSG.NEWOBJ)]) {
    const counter = readCounterObject(message);
    assert.ok(counter);
    assert.equal(hex(only(new NftBatch().add('counter', counter))), hex(message));
  }
});

test('flowtables are written as nft writes them, and read back', () => {
  const [message] = ofKind(flowtable, NFT_MSG.NEWFLOWTABLE);
  assert.ok(message);
  const read = readFlowtable(message);
  assert.deepEqual(read, {
    table: { family: 'ip', name: 'kube-proxy' },
    name: 'fast-path',
    priority: 0,
    devices: ['podveth1', 'podveth0'],
    isCounted: true,
  });
  assert.equal(hex(only(new NftBatch().add('flowtable', read))), hex(message));
  const withoutFlags = hex(only(new NftBatch().delete('flowtable', read)));
  assert.equal(`${withoutFlags}0800070000000002`, hex(message));
  const whole = only(new NftBatch().delete('flowtable', { table: read.table, name: read.name }));
  assert.ok(hex(message).startsWith(hex(whole)));
});

test('an offset within a recorded message finds its element', () => {
  const message = ofKind(ip, NFT_MSG.NEWSETELEM)[0];
  assert.ok(message);
  const bytes = Buffer.from(hex(message, true), 'hex');
  const second = bytes.indexOf(Buffer.from('svc'));
  assert.equal(elementIndexAt(bytes, 0, second), 1);
  assert.equal(elementIndexAt(bytes, 0, second - 64), 0);
  assert.equal(elementIndexAt(bytes, 0, 4), -1);
  assert.equal(elementIndexAt(bytes, 0, 9999), -1);
});

/** Rules in which nft writes or omits a default, depending on the syntax of the rule. */
function isSentWithRedundantDetail(message: NetlinkMessage): boolean {
  const bytes = hex(message);
  const bitwiseWithoutOp = /6269747769736500.{8}.{16}.{16}080003/.test(bytes);
  const natWithPortFlag = /08000500000000020800070000000002/.test(bytes);
  return bitwiseWithoutOp || natWithPortFlag;
}

function recording(name: string): NetlinkMessage[] {
  const text = readFileSync(join(import.meta.dirname, 'testdata', name), 'utf8');
  const bytes = text
    .trim()
    .split('\n')
    .map((line) => Buffer.from(line.padEnd(Math.ceil(line.length / 8) * 8, '0'), 'hex'));
  return readMessages(Buffer.concat(bytes));
}

function ofKind(messages: readonly NetlinkMessage[], kind: number): NetlinkMessage[] {
  return messages.filter(({ type }) => messageKind(type) === kind);
}

/** The one operation of a batch. */
function only(batch: NftBatch): NetlinkMessage {
  const [, message, ...rest] = readMessages(batch.encode(false).slice());
  assert.ok(message && rest.length === 0);
  return message;
}

/** A message's payload, or with its header. */
function hex(message: NetlinkMessage, whole = false): string {
  const payload = message.payload();
  const from = payload.byteOffset - (whole ? 16 : 0);
  return Buffer.from(payload.buffer, from, message.length - (whole ? 0 : 16)).toString('hex');
}
