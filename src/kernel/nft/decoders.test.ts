import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { expression, record } from '../../../test/kernel/nft-arbitraries.ts';
import { NetlinkFormatError, type NetlinkMessage, readMessages } from '../netlink/reader.ts';
import { MessageWriter } from '../netlink/writer.ts';
import { NftBatch } from './batch.ts';
import { readElements } from './codec/element.ts';
import { readRule } from './codec/objects.ts';
import { messageType, NFT_MSG } from './constants.ts';
import { readEvent } from './event-decoder.ts';
import type { Expr } from './expr.ts';
import type { Element } from './objects.ts';
import { readTrace } from './trace.ts';

const kinds = Object.values(NFT_MSG);

/** An attribute: bytes, or attributes. */
type Tree = readonly (readonly [type: number, value: Uint8Array | Tree])[];

/** Attributes with plausible types, lengths and nesting, and wrong ones among them. */
const attributes = fc.letrec<{ tree: Tree }>((tie) => ({
  tree: fc.array(
    fc.tuple(
      fc.integer({ min: 0, max: 18 }),
      fc.oneof({ maxDepth: 5 }, fc.uint8Array({ maxLength: 12 }), name(), tie('tree'), tie('tree')),
    ),
    { maxLength: 5 },
  ),
})).tree;

function name(): fc.Arbitrary<Uint8Array> {
  const names = [
    'payload',
    'meta',
    'ct',
    'cmp',
    'range',
    'bitwise',
    'byteorder',
    'lookup',
    'fib',
    'numgen',
    'hash',
  ];
  const actions = ['immediate', 'nat', 'masq', 'reject', 'counter', 'objref', 'dynset', 'log', 'nat\0'];
  return fc.constantFrom(...names, ...actions).map((text) => new TextEncoder().encode(`${text}\0`));
}

test('no nf_tables notification crashes or hangs its decoder', () => {
  fc.assert(
    fc.property(fc.constantFrom(...kinds), fc.nat(12), attributes, (kind, family, list) => {
      const message = messageOf(kind, family, (writer) => writeAll(writer, list));
      try {
        readEvent(message);
        readTrace(message);
      } catch (error) {
        if (!(error instanceof NetlinkFormatError)) throw error;
      }
    }),
    { numRuns: 5000 },
  );
});

test('expressions written to a rule are read back unchanged', () => {
  fc.assert(
    fc.property(
      fc.array(expression(), { maxLength: 8 }),
      fc.option(fc.string({ maxLength: 20 })),
      (exprs, comment) => {
        const chain = { table: { family: 'ip', name: 't' }, name: 'c' } as const;
        const text = comment?.replaceAll('\0', '');
        const rule = { chain, exprs, ...(text && { comment: text }) };
        const [, message] = readMessages(new NftBatch().add('rule', rule).encode(false));
        assert.ok(message);
        assert.deepEqual(readRule(message), rule);
      },
    ),
    { numRuns: 1000 },
  );
});

test('written elements are read back unchanged', () => {
  const bytes = fc.uint8Array({ minLength: 1, maxLength: 64 });
  const element: fc.Arbitrary<Element> = record(
    {
      key: bytes,
      keyEnd: bytes,
      data: bytes,
      timeoutMs: fc.nat(),
      expiresMs: fc.nat(),
      comment: fc.string({ minLength: 1, maxLength: 30, unit: 'grapheme-ascii' }),
      intervalEnd: fc.constant(true),
    },
    ['key'],
  );
  const set = { table: { family: 'ip6', name: 't' }, name: 's' } as const;
  fc.assert(
    fc.property(fc.array(element, { minLength: 1, maxLength: 30 }), (elements) => {
      const [, message] = readMessages(new NftBatch().addElements(set, elements).encode(false));
      assert.ok(message);
      assert.deepEqual(readElements(message), elements);
    }),
  );
});

test('an element without a key (the catch-all) is ignored', () => {
  const message = messageOf(NFT_MSG.NEWSETELEM, 2, (writer) => {
    const list = writer.beginNested(3);
    writer.endNested(writer.beginNested(1));
    const second = writer.beginNested(1);
    writer.nestedData(1, 1, Uint8Array.of(7));
    writer.endNested(second);
    writer.endNested(list);
  });
  assert.deepEqual(readElements(message), [{ key: Uint8Array.of(7) }]);
});

test('an unknown expression keeps its name and attributes', () => {
  const exprs: Expr[] = [{ kind: 'unknown', name: 'quota', data: Uint8Array.of(5, 0, 1, 0, 9, 0, 0, 0) }];
  const chain = { table: { family: 'inet', name: 't' }, name: 'c' } as const;
  const [, message] = readMessages(new NftBatch().add('rule', { chain, exprs }).encode(false));
  assert.ok(message);
  assert.deepEqual(readRule(message).exprs, exprs);
});

function messageOf(
  kind: (typeof kinds)[number],
  family: number,
  write: (writer: MessageWriter) => void,
): NetlinkMessage {
  const writer = new MessageWriter();
  writer.beginMessage(messageType(kind), 0, 1);
  writer.nfgenmsg(family);
  write(writer);
  writer.endMessage();
  const [message] = readMessages(writer.bytes());
  assert.ok(message);
  return message;
}

function writeAll(writer: MessageWriter, tree: Tree): void {
  for (const [type, value] of tree) {
    if (value instanceof Uint8Array) writer.data(type, value);
    else {
      const nest = writer.beginNested(type);
      writeAll(writer, value);
      writer.endNested(nest);
    }
  }
}
