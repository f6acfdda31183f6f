import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { plainJson } from '../../test/config/arbitrary-files.ts';
import { readYaml } from './read-yaml.ts';
import { type Plain, writeYaml } from './write-yaml.ts';

/** Recorded from the YAML library Kubernetes uses. */
const strings: [value: string, written: string][] = [
  ['plain text', 'plain text'],
  ['0.0.0.0:10256', '0.0.0.0:10256'],
  ['::', "'::'"],
  ['[::]:10256', "'[::]:10256'"],
  ['fd00::1/64', 'fd00::1/64'],
  ['', '""'],
  ['yes', '"yes"'],
  ['n', '"n"'],
  ['null', '"null"'],
  ['~', '"~"'],
  ['14', '"14"'],
  ['1_000', '"1_000"'],
  ['0x1f', '"0x1f"'],
  ['1.36', '"1.36"'],
  ['1e3', '"1e3"'],
  ['.inf', '".inf"'],
  ['1:30', '"1:30"'],
  ['2001-01-01', '"2001-01-01"'],
  ['a: b', "'a: b'"],
  ['a:', "'a:'"],
  ['a #b', "'a #b'"],
  ['#b', "'#b'"],
  ['- a', "'- a'"],
  ['-', "'-'"],
  ['*', "'*'"],
  ['[a]', "'[a]'"],
  ["it's: ", "'it''s: '"],
  [' a', "' a'"],
  ['---', "'---'"],
  ['a\tb', '"a\\tb"'],
  ['a\x07"\\', '"a\\a\\"\\\\"'],
  ['é', 'é'],
  ['😀', '"\\U0001F600"'],
  ['\x1b', '"\\e"'],
  ['a\nb', '|-\n  a\n  b'],
  ['a\n', '|\n  a'],
  ['a\n\n', '|+\n  a\n'],
  ['\na', '|2-\n\n  a'],
  ['a \nb', '"a \\nb"'],
];
for (const [value, written] of strings) {
  test(`the string ${JSON.stringify(value)}`, () => {
    assert.equal(writeYaml({ k: value }), `k: ${written}\n`);
  });
}

test('long strings are broken at the first space after column 80', () => {
  const words = 'word '.repeat(40).trim();
  const [first = '', second = ''] = writeYaml({ k: words }).split('\n');
  assert.equal(first, `k: ${'word '.repeat(16).trim()}`);
  assert.ok(second.startsWith('  word word'));
  assert.ok(!writeYaml({ k: 'x'.repeat(200) }).includes('\n ', 1));
});

test('maps are sorted, lists are not indented under their key', () => {
  const value = { b: [{ z: 1, x: 'a' }, null, []], a: { d: [], c: {} }, m: 0.00001 };
  assert.equal(writeYaml(value), 'a:\n  c: {}\n  d: []\nb:\n- x: a\n  z: 1\n- null\n- []\nm: 1e-05\n');
});

const numbers: [value: number, written: string][] = [
  [5, '5'],
  [0.5, '0.5'],
  [123456.5, '123456.5'],
  [1234567.5, '1.2345675e+06'],
  [1e19, '10000000000000000000'],
  [1e20, '1e+20'],
  [-3, '-3'],
];
for (const [value, written] of numbers) {
  test(`the number ${value}`, () => assert.equal(writeYaml({ k: value }), `k: ${written}\n`));
}

test('written YAML reads back as the same value', async () => {
  const text = fc.oneof(
    fc.string({ unit: 'binary' }),
    fc
      .array(fc.constantFrom('word', ' ', '  ', ': ', '#', "'", '"', '\n', '\\', '\t', 'é', '- '))
      .map((a) => a.join('')),
    fc.lorem({ maxCount: 40 }),
  );
  const { value } = fc.letrec<{ value: Plain; leaf: Plain }>((tie) => ({
    leaf: fc.oneof(text, fc.boolean(), fc.constant(null), fc.integer()),
    value: fc.oneof({ maxDepth: 3 }, tie('leaf'), fc.dictionary(fc.string({ maxLength: 9 }), tie('value'))),
  }));
  await fc.assert(
    fc.asyncProperty(
      fc.dictionary(fc.constantFrom('a', 'b', 'c'), fc.oneof(value, fc.array(text))),
      async (map) => {
        const read = plainJson((await readYaml(writeYaml(map))).value);
        assert.deepEqual(read, plainCopy(Object.keys(map).length === 0 ? null : map));
      },
    ),
  );
});

/** With ordinary prototypes and no negative zero, which YAML writes as 0. */
function plainCopy(value: Plain): unknown {
  if (value === null || typeof value !== 'object') return typeof value === 'number' ? value + 0 : value;
  if (Array.isArray(value)) return value.map(plainCopy);
  return Object.fromEntries(Object.entries(value).map(([key, entry]) => [key, plainCopy(entry)]));
}
