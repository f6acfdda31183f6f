import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { goJson, quote, quoteList, quoteRune } from './go-quote.ts';

const quotings: [text: string, quoted: string][] = [
  ['', '""'],
  ['plain text', '"plain text"'],
  ['say "hi" \\ bye', '"say \\"hi\\" \\\\ bye"'],
  ["it's", `"it's"`],
  ['\x07\b\f\n\r\t\v', '"\\a\\b\\f\\n\\r\\t\\v"'],
  ['\0\x1b\x7f', '"\\x00\\x1b\\x7f"'],
  ['é中😀\u0300\ufffd', '"é中😀\u0300\ufffd"'],
  ['\u00a0\u200b\ue000', '"\\u00a0\\u200b\\ue000"'],
  ['\u{e0001}', '"\\U000e0001"'],
  ['\ud800', '"\ufffd"'],
];

for (const [text, quoted] of quotings) {
  test(`quotes as ${quoted}`, () => assert.equal(quote(text), quoted));
}

test('quoteList formats a list like %q in Go', () => {
  assert.equal(quoteList([]), '[]');
  assert.equal(quoteList(['a', 'b c']), '["a" "b c"]');
});

test('goJson is safe inside HTML and scripts', () => {
  assert.equal(goJson(['<a>&', '\u2028\u2029é"']), '["\\u003ca\\u003e\\u0026","\\u2028\\u2029é\\""]');
});

test('quoteRune uses single quotes', () => {
  assert.equal(quoteRune(0x70), "'p'");
  assert.equal(quoteRune(0x27), "'\\''");
  assert.equal(quoteRune(0x22), `'"'`);
  assert.equal(quoteRune(0x5c), "'\\\\'");
  assert.equal(quoteRune(0xc3), "'Ã'");
});

test('a quoted ASCII text is JSON for the same text, as far as the two notations agree', () => {
  const shared = fc.string({ unit: fc.constantFrom('a', ' ', '"', '\\', '\n', '\t', '\r', '/', "'") });
  fc.assert(fc.property(shared, (text) => JSON.parse(quote(text)) === text));
});
