import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import fc from 'fast-check';
import { AttributeMap } from './attribute-map.ts';
import { formatDatagram } from './debug.ts';
import { readAcknowledgement } from './error.ts';
import { AttributeReader, forEachMessage, NetlinkFormatError, readMessages } from './reader.ts';
import { MessageWriter } from './writer.ts';

suite('malformed input', () => {
  const messageBytes = (length: number, total: number) => {
    const bytes = new Uint8Array(total);
    new Uint32Array(bytes.buffer, 0, 1)[0] = length;
    return bytes;
  };

  for (const [what, bytes] of [
    ['too short for a header', messageBytes(16, 12)],
    ['a length below the header', messageBytes(15, 16)],
    ['a length of zero', messageBytes(0, 64)],
    ['a length beyond the datagram', messageBytes(20, 16)],
  ] as const) {
    test(`${what} is refused`, () => assert.throws(() => readMessages(bytes), NetlinkFormatError));
  }

  test('an attribute longer than its message or shorter than its header is refused', () => {
    for (const length of [0, 3, 9, 0xffff]) {
      const bytes = new Uint8Array(8);
      new Uint16Array(bytes.buffer)[0] = length;
      assert.throws(() => AttributeReader.over(bytes).next(), NetlinkFormatError, String(length));
    }
  });

  test('every accessor refuses a value that is too short for its type', () => {
    const writer = new MessageWriter();
    writer.data(9, new Uint8Array(0));
    const reader = AttributeReader.over(writer.bytes());
    assert.ok(reader.next());
    for (const read of ['u8', 'u16', 'u16Be', 'u32', 'u32Be', 'i32Be', 'u64', 'u64Be'] as const) {
      assert.throws(() => reader[read](), /attribute 9 has 0 bytes/);
    }
    assert.equal(reader.string(), '');
    assert.equal(reader.bytes().length, 0);
    assert.equal(reader.nested().next(), false);
  });

  test('a message too short for its family header is refused', () => {
    const writer = new MessageWriter();
    writer.beginMessage(1, 0, 0);
    writer.endMessage();
    const [message] = readMessages(writer.bytes());
    assert.throws(() => message?.attributes(4), NetlinkFormatError);
  });
});

test('text without a terminator is read to its end, and flag bits are not part of a type', () => {
  const writer = new MessageWriter();
  writer.data(3 | 0x8000, new TextEncoder().encode('abc'));
  const reader = AttributeReader.over(writer.bytes());
  assert.ok(reader.next());
  assert.equal(reader.type, 3);
  assert.equal(reader.string(), 'abc');
});

test('of an attribute that occurs twice, the last one counts', () => {
  const writer = new MessageWriter();
  writer.u32Be(1, 5);
  writer.u32Be(1, 6);
  const map = new AttributeMap(AttributeReader.over(writer.bytes()));
  assert.equal(map.u32Be(1), 6);
  assert.equal(map.u32Be(2), undefined);
});

test('no bytes crash or hang the netlink reader', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 400 }), (bytes) => {
      let messages = 0;
      try {
        forEachMessage(bytes, (message) => {
          messages++;
          readAcknowledgement(message);
          walk(message.attributes(4), 0);
        });
      } catch (error) {
        if (!(error instanceof NetlinkFormatError)) throw error;
      }
      assert.ok(messages <= bytes.length / 16);
      assert.equal(typeof formatDatagram(bytes), 'string');
    }),
    { numRuns: 2000 },
  );
});

test('no bytes inside a well-framed message crash or hang the netlink reader', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 0, max: 20 }),
      fc.integer({ min: 0, max: 0xffff }),
      payload(),
      (type, flags, body) => {
        const writer = new MessageWriter();
        writer.beginMessage(type, flags, 1);
        writer.raw(body);
        writer.endMessage();
        for (const message of readMessages(writer.bytes())) {
          for (const read of [readAcknowledgement, () => walk(message.attributes(4), 0)]) {
            try {
              read(message);
            } catch (error) {
              if (!(error instanceof NetlinkFormatError)) throw error;
            }
          }
        }
        formatDatagram(writer.bytes());
      },
    ),
    { numRuns: 2000 },
  );
});

/** Bytes that often look like attributes: small lengths and types. */
function payload(): fc.Arbitrary<Uint8Array> {
  const chunk = fc
    .tuple(fc.integer({ min: 0, max: 24 }), fc.integer({ min: 0, max: 12 }), fc.uint8Array({ maxLength: 20 }))
    .map(([length, type, rest]) => [length, 0, type, 0x80, ...rest]);
  return fc.array(chunk, { maxLength: 8 }).map((chunks) => Uint8Array.from(chunks.flat()));
}

function walk(reader: AttributeReader, depth: number): void {
  while (reader.next()) {
    reader.string();
    if (depth < 8) walk(reader.nested(), depth + 1);
  }
}
