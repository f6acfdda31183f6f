import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { packNames } from '../../model/pod-names.ts';
import { NamePacker } from './name-packer.ts';

test('names are packed from bytes as they are from strings', () => {
  const packer = new NamePacker();
  const name = fc.oneof(
    fc.string({ maxLength: 320 }),
    fc.string({ unit: 'grapheme', maxLength: 20 }),
    fc.constantFrom('', 'web-1', 'web-12', 'x'.repeat(255), 'x'.repeat(256)),
  );
  fc.assert(
    fc.property(fc.array(name, { maxLength: 40 }), (names) => {
      const bytes = Buffer.from(names.join(''));
      packer.begin();
      let start = 0;
      for (const one of names) {
        const end = start + Buffer.byteLength(one);
        if (start === end) packer.addNone();
        else assert.ok(packer.add(bytes, start, end));
        start = end;
      }
      assert.equal(packer.end(), packNames(names));
    }),
  );
});

test('a name that is not UTF-8 is refused', () => {
  const packer = new NamePacker();
  packer.begin();
  assert.equal(packer.add(Buffer.from([0x77, 0xff]), 0, 2), false);
});
