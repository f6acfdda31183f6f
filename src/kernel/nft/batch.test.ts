import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { type NetlinkMessage, readMessages } from '../netlink/reader.ts';
import { NftBatch } from './batch.ts';
import { readElements } from './codec/element.ts';
import { messageKind, NFNL_MSG_BATCH_BEGIN, NFNL_MSG_BATCH_END, NFT_MSG } from './constants.ts';
import { typeOf, types } from './fields.ts';
import type { Element } from './objects.ts';
import { describeOperation } from './operation.ts';

const table = { family: 'ip', name: 'kube-proxy' } as const;
const chain = { table, name: 'services' };
const set = { table, name: 'ips', key: [types.ipv4Addr] };
const counter = { table, name: 'rejected' };

const ACK = 0x4;
const CREATE = 0x400;
const APPEND = 0x800;

function messagesOf(batch: NftBatch, commit = true): NetlinkMessage[] {
  return readMessages(batch.encode(commit).slice());
}

/** Kind and flags (beyond NLM_F_REQUEST and the acknowledgement) of each operation. */
function summary(batch: NftBatch): [number | undefined, number][] {
  return messagesOf(batch)
    .slice(1, -1)
    .map((m) => [messageKind(m.type), m.flags & ~(ACK | 1)]);
}

suite('verbs', () => {
  test('add creates objects and appends rules', () => {
    const batch = new NftBatch();
    batch.add('table', table).add('chain', chain).add('set', set).add('counter', counter);
    batch.add('rule', { chain, exprs: [] });
    assert.deepEqual(summary(batch), [
      [NFT_MSG.NEWTABLE, CREATE],
      [NFT_MSG.NEWCHAIN, CREATE],
      [NFT_MSG.NEWSET, CREATE],
      [NFT_MSG.NEWOBJ, CREATE],
      [NFT_MSG.NEWRULE, CREATE | APPEND],
    ]);
  });

  test('delete and flush send the message of their kind of object', () => {
    const batch = new NftBatch();
    batch.delete('table', table).delete('chain', chain).delete('set', set);
    batch.flush('chain', chain).flush('set', set);
    assert.deepEqual(
      summary(batch).map(([kind]) => kind),
      [NFT_MSG.DELTABLE, NFT_MSG.DELCHAIN, NFT_MSG.DELSET, NFT_MSG.DELRULE, NFT_MSG.DELSETELEM],
    );
  });

  test('destroy adds and deletes', () => {
    const kinds = summary(new NftBatch().destroy('table', table)).map(([kind]) => kind);
    assert.deepEqual(kinds, [NFT_MSG.NEWTABLE, NFT_MSG.DELTABLE]);
  });

  test('operations are described in the syntax of nft', () => {
    const batch = new NftBatch().add('table', table).add('rule', { chain, exprs: [] });
    batch.addElements(set, [{ key: Uint8Array.of(1, 2, 3, 4) }]).delete('chain', chain);
    assert.deepEqual(batch.operations.map(describeOperation), [
      'add table ip kube-proxy',
      'add rule ip kube-proxy services',
      'add element ip kube-proxy ips',
      'delete chain ip kube-proxy services',
    ]);
  });
});

suite('framing', () => {
  test('a batch has a begin mark, numbered operations with an acknowledgement of the last, and an end mark', () => {
    const batch = new NftBatch().add('table', table).add('chain', chain);
    const messages = messagesOf(batch);
    assert.deepEqual(
      messages.map((m) => m.sequence),
      [0, 1, 2, 3],
    );
    assert.deepEqual([messages[0]?.type, messages[3]?.type], [NFNL_MSG_BATCH_BEGIN, NFNL_MSG_BATCH_END]);
    assert.deepEqual(
      messages.map((m) => m.flags & ACK),
      [0, 0, ACK, 0],
    );
  });

  test('a batch encoded for a check has no end mark and can still grow and be committed', () => {
    const batch = new NftBatch().add('table', table);
    assert.equal(messagesOf(batch, false).length, 2);
    assert.equal(messagesOf(batch, true).length, 3);
    batch.add('chain', chain);
    assert.deepEqual(
      messagesOf(batch, true).map((m) => m.sequence),
      [0, 1, 2, 3],
    );
  });

  test('the expected generation is in the first message', () => {
    const generation = (batch: NftBatch) => {
      const reader = messagesOf(batch)[0]?.attributes(4);
      return reader?.next() ? reader.u32Be() : undefined;
    };
    assert.equal(generation(new NftBatch()), 0);
    assert.equal(generation(new NftBatch().expectGeneration(0xdeadbeef)), 0xdeadbeef);
  });

  test('sets without a number get one that differs from all others', () => {
    const batch = new NftBatch()
      .add('set', set)
      .add('set', { ...set, name: 'b' })
      .add('set', { ...set, id: 3 });
    const ids = messagesOf(batch)
      .slice(1, -1)
      .map((message) => {
        for (const reader = message.attributes(4); reader.next(); )
          if (reader.type === 10) return reader.u32Be();
        return undefined;
      });
    assert.equal(new Set(ids).size, 3);
    assert.equal(ids[2], 3);
  });
});

suite('elements', () => {
  const many: Element[] = Array.from({ length: 10_000 }, (_, i) => ({
    key: Uint8Array.of(10, 0, i >> 8, i),
    ...(i % 3 === 0 && { comment: `service ${i}` }),
  }));

  test('a long list of elements is split into several messages, in order and complete', () => {
    const batch = new NftBatch().addElements(set, many);
    const messages = messagesOf(batch).slice(1, -1);
    assert.ok(messages.length > 1);
    assert.ok(messages.every((m) => m.length < 65_536 + 100));
    assert.deepEqual(messages.flatMap(readElements), many);
    assert.deepEqual(
      batch.operations.flatMap((operation) => operation.elements ?? []),
      many,
    );
  });

  test('a message has as many elements as fit', () => {
    const batch = new NftBatch().addElements(set, many);
    const [first] = messagesOf(batch).slice(1);
    assert.ok(first && first.length > 65_000);
  });

  test('an empty list of elements writes no message', () => {
    assert.equal(new NftBatch().addElements(set, []).operations.length, 0);
  });

  test('a byte offset within a message finds the element there', () => {
    const batch = new NftBatch().add('table', table).addElements(set, many);
    const bytes = batch.encode(false);
    let index = 1;
    for (const message of readMessages(bytes).slice(2)) {
      const { elements = [] } = batch.operations[index] ?? {};
      const last = elements.at(-1);
      assert.deepEqual(batch.elementAt(index, message.length - 8), last);
      assert.equal(batch.elementAt(index, 16), undefined);
      index++;
    }
    assert.equal(batch.elementAt(0, 30), undefined);
    assert.equal(batch.elementAt(9999, 30), undefined);
  });
});

suite('what nf_tables or nft would not take', () => {
  const cases: [string, (batch: NftBatch) => unknown, RegExp][] = [
    ['an empty name', (b) => b.add('table', { family: 'ip', name: '' }), /table name ""/],
    ['a long name', (b) => b.add('chain', { table, name: 'x'.repeat(256) }), /longer than 255 bytes/],
    ['a NUL in a name', (b) => b.flush('set', { table, name: 'a\0b' }), /has a NUL/],
    [
      'a long comment',
      (b) => b.add('chain', { ...chain, comment: 'x'.repeat(129) }),
      /longer than 128 bytes/,
    ],
    ['a set without fields', (b) => b.add('set', { ...set, key: [] }), /set ips must have fields/],
    [
      'typeof beside plain types',
      (b) => b.add('set', { ...set, key: [typeOf.numgenRandom(2), types.ipv4Addr] }),
      /either all or none/,
    ],
    [
      'typeof keys with plain data',
      (b) => b.add('set', { ...set, key: [typeOf.ipDaddr], data: [types.mark] }),
      /either/,
    ],
    [
      'a register that is none',
      (b) => b.add('rule', { chain, exprs: [{ kind: 'meta', key: 'mark', dreg: 16 }] }),
      /register 16 is not in 0..15/,
    ],
    [
      'a mask of another length',
      (b) =>
        b.add('rule', {
          chain,
          exprs: [{ kind: 'bitwise', sreg: 0, dreg: 0, mask: new Uint8Array(4), xor: new Uint8Array(2) }],
        }),
      /mask has 4 bytes and xor 2/,
    ],
    [
      'one bad element among many',
      (b) =>
        b.addElements(set, [
          ...Array.from({ length: 5000 }, () => ({ key: Uint8Array.of(1, 2, 3, 4) })),
          { key: Uint8Array.of(1, 2, 3, 4), comment: 'x'.repeat(200) },
        ]),
      /longer than 128 bytes/,
    ],
  ];
  for (const [what, write, message] of cases) {
    test(`${what} is refused, and leaves the batch unchanged`, () => {
      const batch = new NftBatch().add('table', table);
      const before = batch.encode(true).slice();
      assert.throws(() => write(batch), message);
      assert.deepEqual(batch.encode(true).slice(), before);
      assert.equal(batch.operations.length, 1);
    });
  }
});
