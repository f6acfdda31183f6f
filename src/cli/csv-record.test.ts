import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { readCsvRecord, writeCsvRecord } from './csv-record.ts';

const records: [text: string, fields: string[]][] = [
  ['a', ['a']],
  ['a,b', ['a', 'b']],
  [' a, b ', [' a', ' b ']],
  ['a,', ['a', '']],
  [',', ['', '']],
  ['"a,b",c', ['a,b', 'c']],
  ['"","x""y"', ['', 'x"y']],
  ['"a\r\nb",c', ['a\nb', 'c']],
  ['\r\n\nq', ['q']],
  ['a,b\nc', ['a', 'b']],
  ['a,b\r', ['a', 'b']],
  ['"a"\r', ['a']],
];

for (const [text, fields] of records) {
  test(`reads ${JSON.stringify(text)}`, () => assert.deepEqual(readCsvRecord(text), fields));
}

const bare = 'bare " in non-quoted-field';
const quoted = 'extraneous or missing " in quoted-field';
const faults: [text: string, message: string][] = [
  ['\n', 'EOF'],
  ['\r', 'EOF'],
  ['a"b', `parse error on line 1, column 2: ${bare}`],
  ['x,é"b', `parse error on line 1, column 5: ${bare}`],
  ['"a"b', `parse error on line 1, column 3: ${quoted}`],
  ['"a"\rb', `parse error on line 1, column 3: ${quoted}`],
  ['"a', `parse error on line 1, column 3: ${quoted}`],
  ['"a\n', `parse error on line 1, column 4: ${quoted}`],
  ['"a\nb', `record on line 1; parse error on line 2, column 2: ${quoted}`],
  ['\n\n"a\nb', `record on line 3; parse error on line 4, column 2: ${quoted}`],
  ['"a\nb"x', `record on line 1; parse error on line 2, column 2: ${quoted}`],
];

for (const [text, message] of faults) {
  test(`refuses ${JSON.stringify(text)}`, () => {
    assert.throws(() => readCsvRecord(text), { message });
  });
}

test('fields are quoted when they need it', () => {
  assert.equal(writeCsvRecord([]), '');
  assert.equal(writeCsvRecord(['a b', '', 'c']), 'a b,,c');
  assert.equal(writeCsvRecord([' a', 'b"c', 'd,e', 'f\ng', '\\.']), '" a","b""c","d,e","f\ng","\\."');
});

test('a written record reads back as the same fields', () => {
  const field = fc.string({ unit: fc.constantFrom('a', ' ', ',', '"', '\n', '\r', 'é', '.', '\\') });
  // CRLF is read as LF, and a record of one empty field is written like no record at all.
  const fields = fc
    .array(
      field.map((text) => text.replace(/\r+\n/g, '\n')),
      { minLength: 1 },
    )
    .filter((list) => list.length > 1 || list[0] !== '');
  fc.assert(fc.property(fields, (list) => assert.deepEqual(readCsvRecord(writeCsvRecord(list)), list)));
});

test('any text gives fields or throws an Error', () => {
  const text = fc.string({ unit: fc.constantFrom('a', ',', '"', '\n', '\r') });
  fc.assert(
    fc.property(text, (value) => {
      try {
        assert.ok(readCsvRecord(value).length > 0);
      } catch (error) {
        assert.match((error as Error).message, /^EOF$|parse error on line \d+, column \d+: /);
      }
    }),
  );
});
