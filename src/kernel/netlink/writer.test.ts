import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { readMessages } from './reader.ts';
import { MessageWriter } from './writer.ts';

const littleEndian = {
  skip: new Uint8Array(Uint16Array.of(1).buffer)[0] !== 1 && 'bytes are of a little-endian host',
};

test('a message has the bytes that the protocol prescribes', littleEndian, () => {
  const writer = new MessageWriter();
  writer.beginMessage(0x1234, 0x0305, 7);
  writer.nfgenmsg(2, 10);
  writer.u8(1, 0xab);
  writer.u16(2, 0x0102);
  writer.u16Be(3, 0x0102);
  writer.u32(4, 0x01020304);
  writer.u32Be(5, 0x01020304);
  writer.u64(6, 0x0102030405060708n);
  writer.u64Be(7, 0x0102030405060708n);
  writer.string(8, 'abc');
  writer.string(9, 'ö', Uint8Array.of(0, 3));
  writer.flag(10);
  const nest = writer.beginNested(11);
  writer.data(12, Uint8Array.of(1, 2, 3, 4, 5));
  writer.endNested(nest);
  writer.nestedData(13, 1, Uint8Array.of(0xff));
  writer.endMessage();
  assert.equal(
    Buffer.from(writer.bytes()).toString('hex'),
    [
      '88000000341205030700000000000000',
      '0200000a',
      '05000100ab000000',
      '0600020002010000',
      '0600030001020000',
      '0800040004030201',
      '0800050001020304',
      '0c0006000807060504030201',
      '0c0007000102030405060708',
      '0800080061626300',
      '090009000003c3b600000000',
      '04000a00',
      '10000b80' + '09000c000102030405000000',
      '0c000d80' + '05000100ff000000',
    ].join(''),
  );
});

test('a reader returns what was written, also when the buffer had to grow', () => {
  const attribute = fc.oneof(
    fc.record({ kind: fc.constant('u32' as const), value: fc.nat(0xffffffff) }),
    fc.record({ kind: fc.constant('u64Be' as const), value: fc.bigInt(0n, 0xffffffffffffffffn) }),
    fc.record({
      kind: fc.constant('string' as const),
      value: fc.string({ unit: 'grapheme', maxLength: 20 }),
    }),
    fc.record({ kind: fc.constant('data' as const), value: fc.uint8Array({ maxLength: 70 }) }),
  );
  fc.assert(
    fc.property(fc.array(fc.array(attribute, { maxLength: 12 }), { maxLength: 5 }), (messages) => {
      const writer = new MessageWriter(1);
      for (const [i, attributes] of messages.entries()) {
        writer.beginMessage(100 + i, 0, i);
        for (const a of attributes) {
          if (a.kind === 'u32') writer.u32(1, a.value);
          else if (a.kind === 'u64Be') writer.u64Be(2, a.value);
          else if (a.kind === 'string') writer.string(3, a.value.replaceAll('\0', ''));
          else writer.data(4, a.value);
        }
        writer.endMessage();
      }
      const read = readMessages(writer.bytes()).map((message) => {
        const values: unknown[] = [];
        for (const reader = message.attributes(0); reader.next(); ) {
          values.push(
            [() => 0, () => reader.u32(), () => reader.u64Be(), () => reader.string(), () => reader.bytes()][
              reader.type
            ]?.(),
          );
        }
        return values;
      });
      const expected = messages.map((list) =>
        list.map((a) => (a.kind === 'string' ? a.value.replaceAll('\0', '') : a.value)),
      );
      assert.deepEqual(read, expected);
    }),
  );
});

test('padding is zero where a longer message was truncated', littleEndian, () => {
  const writer = new MessageWriter();
  writer.beginMessage(1, 0, 0);
  const before = writer.length;
  writer.data(1, new Uint8Array(40).fill(0xff));
  writer.truncate(before);
  writer.data(1, Uint8Array.of(1));
  writer.u8(2, 1);
  writer.string(3, '');
  writer.nestedData(4, 5, Uint8Array.of(1, 2));
  writer.endMessage();
  assert.equal(
    Buffer.from(writer.bytes().subarray(16)).toString('hex'),
    '0500010001000000' + '0500020001000000' + '0500030000000000' + '0c000480' + '0600050001020000',
  );
});

test('an attribute whose length exceeds 16 bits is refused', () => {
  const writer = new MessageWriter();
  writer.beginMessage(1, 0, 0);
  assert.throws(() => writer.data(1, new Uint8Array(0xfffc)), /attribute of 65536 bytes exceeds 65535/);
  const nest = writer.beginNested(1);
  writer.data(1, new Uint8Array(0xfff0));
  writer.data(1, new Uint8Array(8));
  assert.throws(() => writer.endNested(nest), RangeError);
});
