import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { concatLength, concatType, concatValues, splitValues, typeOf, types } from './fields.ts';
import {
  concatUserdata,
  cutComment,
  maxCommentBytes,
  readUserdata,
  readUserdataText,
  userdataText,
} from './userdata.ts';

test('fields of a concatenation take whole words, a single field does not', () => {
  const frontend = [types.ipv4Addr, types.inetProto, types.inetService];
  assert.equal(concatLength(frontend), 12);
  assert.equal(concatLength([types.inetService]), 2);
  assert.equal(concatLength([types.ipv6Addr, types.inetService]), 20);
  assert.equal(concatType(frontend), 0x730d);
  assert.equal(concatType([types.inetService]), 13);
  assert.equal(concatType([types.ipv4Addr, ...frontend]), (7 << 18) | 0x730d);
});

test('concatenated values can be split again', () => {
  const address = Uint8Array.of(10, 96, 0, 1);
  const [proto, port] = [Uint8Array.of(6), Uint8Array.of(0, 80)];
  const joined = concatValues(address, proto, port);
  assert.deepEqual(joined, Uint8Array.of(10, 96, 0, 1, 6, 0, 0, 0, 0, 80, 0, 0));
  assert.deepEqual(
    splitValues([typeOf.ipDaddr, typeOf.l4proto, typeOf.thDport], joined).map((v) => [...v]),
    [[10, 96, 0, 1], [6], [0, 80]],
  );
  assert.deepEqual(concatValues(port), port);
});

test('a comment is read back; one too long for nft is refused', () => {
  const bytes = concatUserdata([userdataText(0, 'größe'), userdataText(7, 'x')]);
  assert.equal(readUserdataText(bytes, 0), 'größe');
  assert.equal(readUserdataText(bytes, 7), 'x');
  assert.equal(readUserdataText(bytes, 1), undefined);
  assert.throws(() => userdataText(0, 'a'.repeat(129)), /is longer than 128 bytes/);
  assert.throws(() => userdataText(0, 'a\0b'), /has a NUL/);
});

test('a shortened comment fits and is a prefix of the text', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme', maxLength: 200 }), (text) => {
      const cut = cutComment(text);
      assert.ok(text.startsWith(cut));
      assert.ok(Buffer.byteLength(cut) <= maxCommentBytes);
      if (Buffer.byteLength(text) <= maxCommentBytes) assert.equal(cut, text);
      assert.ok(cut.isWellFormed() || !text.isWellFormed());
    }),
  );
});

test('no bytes crash the user data reader', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 60 }), fc.nat(255), (bytes, type) => {
      const total = [...readUserdata(bytes)].reduce((sum, { value }) => sum + 2 + value.length, 0);
      assert.ok(total <= bytes.length);
      readUserdataText(bytes, type);
    }),
  );
});
