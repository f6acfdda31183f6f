import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { plainJson } from '../../test/config/arbitrary-files.ts';
import { readJson } from './read-json.ts';

test('valid JSON reads as JSON.parse reads it', () => {
  fc.assert(
    fc.property(fc.json(), (text) => {
      assert.deepEqual(plainJson(readJson(text)), JSON.parse(text));
    }),
  );
});

test('a text is refused exactly when JSON.parse refuses it', () => {
  const token = fc.constantFrom(
    '{',
    '}',
    '[',
    ']',
    ',',
    ':',
    '"a"',
    '1',
    '-',
    '0',
    '.',
    'e',
    'null',
    ' ',
    '"',
    '\\',
  );
  fc.assert(
    fc.property(fc.array(token), (tokens) => {
      const text = tokens.join('');
      const accepts = (read: (text: string) => unknown) => {
        try {
          read(text);
          return true;
        } catch {
          return false;
        }
      };
      assert.equal(accepts(readJson), accepts(JSON.parse));
    }),
  );
});

test('numbers keep their text and objects every entry', () => {
  assert.deepEqual(readJson(' {"a": 1.50, "a": -0} '), {
    kind: 'object',
    entries: [
      ['a', { kind: 'number', text: '1.50' }],
      ['a', { kind: 'number', text: '-0' }],
    ],
  });
});

test('half a surrogate pair becomes U+FFFD, a whole one a character', () => {
  assert.equal(readJson('"\\ud800x\\ud83d\\ude00"'), '\ufffdx😀');
});

const refused: [text: string, message: string][] = [
  ['', 'unexpected end of JSON input'],
  ['{', 'unexpected end of JSON input'],
  ['{"a"', 'unexpected end of JSON input'],
  ['"abc', 'unexpected end of JSON input'],
  ['{{{', "invalid character '{' looking for beginning of object key string"],
  ['{"a":1,}', "invalid character '}' looking for beginning of object key string"],
  ['{"a" 1}', "invalid character '1' after object key"],
  ['{"a":1 "b"}', `invalid character '"' after object key:value pair`],
  ['[1 2]', "invalid character '2' after array element"],
  ['[1,]', "invalid character ']' looking for beginning of value"],
  ['{"a":x}', "invalid character 'x' looking for beginning of value"],
  ["{'a':1}", "invalid character '\\'' looking for beginning of object key string"],
  ['{} x', "invalid character 'x' after top-level value"],
  ['é', "invalid character 'Ã' looking for beginning of value"],
  ['01', "invalid character '1' after top-level value"],
  ['-x', "invalid character 'x' in numeric literal"],
  ['-', "invalid character ' ' in numeric literal"],
  ['1.x', "invalid character 'x' after decimal point in numeric literal"],
  ['1ex', "invalid character 'x' in exponent of numeric literal"],
  ['trux', "invalid character 'x' in literal true (expecting 'e')"],
  ['nul', "invalid character ' ' in literal null (expecting 'l')"],
  ['"\\q"', "invalid character 'q' in string escape code"],
  ['"\\u12x4"', "invalid character 'x' in \\u hexadecimal character escape"],
  ['"a\nb"', "invalid character '\\n' in string literal"],
  ['['.repeat(10_001), 'exceeded max depth'],
];
for (const [text, message] of refused) {
  test(`${JSON.stringify(text.slice(0, 20))}: ${message}`, () => {
    assert.throws(() => readJson(text), { name: 'ConfigError', message });
  });
}

test('nesting up to the limit is read without recursion', () => {
  assert.ok(readJson('['.repeat(10_000) + ']'.repeat(10_000)));
});
