import assert from 'node:assert/strict';
import { test } from 'node:test';
import { plainJson } from '../../test/config/arbitrary-files.ts';
import { readYaml } from './read-yaml.ts';

async function readPlain(text: string): Promise<unknown> {
  return plainJson((await readYaml(text)).value);
}

/** Recorded from the YAML library Kubernetes uses. */
const scalars: [text: string, value: unknown][] = [
  ['yes', true],
  ['On', true],
  ['y', true],
  ['off', false],
  ['N', false],
  ['~', null],
  ['', null],
  ['"yes"', 'yes'],
  ["'1'", '1'],
  ['0777', 511],
  ['0o17', 15],
  ['0x1F', 31],
  ['0b11', 3],
  ['-0b1', -1],
  ['08', 8],
  ['1_000', 1000],
  ['_1', '_1'],
  ['+5', 5],
  ['.5', 0.5],
  ['5.', 5],
  ['1e3', 1000],
  ['18446744073709551615', Number('18446744073709551615')],
  ['18446744073709551616', Number('18446744073709552000')],
  ['1:30', '1:30'],
  ['2001-01-01', '2001-01-01'],
  ['0.0.0.0', '0.0.0.0'],
  ['::1', '::1'],
  ['10.0.0.0/8,fd00::/64', '10.0.0.0/8,fd00::/64'],
  ['!!str 5', '5'],
  ['!!int "5"', 5],
  ['!local x', 'x'],
];
for (const [text, value] of scalars) {
  test(`the scalar ${JSON.stringify(text)}`, async () => {
    assert.deepEqual(await readPlain(`k: ${text}\n`), { k: value });
  });
}

test('only the first document is read', async () => {
  assert.deepEqual(await readPlain('a: x\n---\n: [\n'), { a: 'x' });
  assert.deepEqual(await readPlain('---\n---\na: x\n'), null);
  assert.deepEqual(await readPlain(''), null);
});

test('keys are turned into strings and sorted', async () => {
  const { value } = await readYaml('b: x\n1: x\ntrue: x\na: x\n');
  assert.deepEqual(
    typeof value === 'object' && value?.kind === 'object' && value.entries.map(([key]) => key),
    ['1', 'a', 'b', 'true'],
  );
});

test('repeated keys are reported with their line; the last one wins', async () => {
  const { value, duplicates } = await readYaml('a: x\nm:\n  b: 1\n  b:\n    c\na: z\n');
  assert.deepEqual(plainJson(value), { a: 'z', m: { b: 'c' } });
  assert.deepEqual(duplicates, ['line 5: key "b" already set in map', 'line 6: key "a" already set in map']);
});

test('aliases and merge keys are expanded', async () => {
  assert.deepEqual(await readPlain('a: &x [p, open]\nb: *x\n'), { a: ['p', 'open'], b: ['p', 'open'] });
  assert.deepEqual(await readPlain('a: &x {p: s}\nb: {<<: *x, q: t}\n'), {
    a: { p: 's' },
    b: { p: 's', q: 't' },
  });
  assert.deepEqual(await readPlain('b: {<<: [{p: s}, {p: t, q: t}]}\n'), { b: { p: 's', q: 't' } });
});

test('a key that is a number or boolean differs from the same text', async () => {
  assert.deepEqual((await readYaml('1: a\n"1": b\n')).duplicates, []);
  assert.deepEqual((await readYaml('1: a\n1: b\ny: c\ntrue: d\n')).duplicates, [
    'line 2: key 1 already set in map',
    'line 4: key true already set in map',
  ]);
});

test('every line break of YAML 1.1 separates values', async () => {
  assert.deepEqual(await readPlain('a: x\rb: z\r\nc: w\u0085d: v'), { a: 'x', b: 'z', c: 'w', d: 'v' });
});

/** Recorded from upstream. */
const refused: [text: string, message: string][] = [
  ['a: b: c\n', 'yaml: mapping values are not allowed in this context'],
  ['kind: X\n  mode: y\n', 'yaml: line 2: mapping values are not allowed in this context'],
  ['x:\n\t- b\n', 'yaml: line 2: found character that cannot start any token'],
  ['x: y\n\tz: 1\n', 'yaml: line 2: found a tab character that violates indentation'],
  ['x:\n  - y\n\t- z\n', 'yaml: line 3: found a tab character that violates indentation'],
  ['x: "y"\n\tz: 1\n', 'yaml: line 2: found character that cannot start any token'],
  ['x: y # c\n\tz: 1\n', 'yaml: line 2: found character that cannot start any token'],
  ['k: 1\nx: ,y\n', 'yaml: line 1: did not find expected node content'],
  ['a: ? b\n', 'yaml: mapping keys are not allowed in this context'],
  ['a: 1\n- b\n', 'yaml: line 1: did not find expected key'],
  ['x:\n  a: 1\n - b\n', 'yaml: line 2: did not find expected key'],
  ['a: 1\nb\nc: 2\n', "yaml: line 3: could not find expected ':'"],
  ['b\nc: 2\n', 'yaml: line 2: mapping values are not allowed in this context'],
  ['k: 1\na: [b]]\n', 'yaml: line 1: did not find expected key'],
  ['}\n', 'yaml: did not find expected node content'],
  ['a: [', 'yaml: line 1: did not find expected node content'],
  ['a: [b,\n', 'yaml: line 1: did not find expected node content'],
  ['k: 1\na: [b, , c]\n', 'yaml: line 1: did not find expected node content'],
  ['k: 1\na: [fd00::/64, ::/0]\n', 'yaml: line 1: did not find expected node content'],
  ['k: 1\na: ["b" "c"]\n', "yaml: line 1: did not find expected ',' or ']'"],
  ['k: 1\na: {b: 1 c: 2}\n', "yaml: line 1: did not find expected ',' or '}'"],
  ['x:\n  - a\n  b: c\n', "yaml: line 2: did not find expected '-' indicator"],
  ['- a\nb: c', "yaml: line 1: did not find expected '-' indicator"],
  ["foo: 1\n'bar\n", 'yaml: line 3: found unexpected end of stream'],
  ['a: "\\x4"\n', 'yaml: did not find expected hexdecimal number'],
  ['a: |x\n b\n', 'yaml: did not find expected comment or line break'],
  ['k: 1\na: */*\n', 'yaml: line 2: did not find expected alphabetic or numeric character'],
  ['a: & b\n', 'yaml: did not find expected alphabetic or numeric character'],
  ['%YAML 1.2\n---\na: b\n', 'yaml: found incompatible YAML document'],
  ['a: [1, 2\nb: 3\n', "yaml: line 1: did not find expected ',' or ']'"],
  ['a:\n  b: 1\n c: 2\n', 'yaml: line 2: did not find expected key'],
  ['a: 1\nb\n', "yaml: line 3: could not find expected ':'"],
  ['k: 1\na: "x\n', 'yaml: line 3: found unexpected end of stream'],
  ['a: "\\q"\n', 'yaml: found unknown escape character'],
  ['a: x\u0001y\n', 'yaml: control characters are not allowed'],
  ['a: *x\n', "yaml: unknown anchor 'x' referenced"],
  ['&a [*a]', "yaml: anchor 'a' value contains itself"],
  ['<<: 5\n', 'yaml: map merge requires map or sequence of maps as the value'],
  ['a: .inf\n', 'json: unsupported value: +Inf'],
  ['a: !!int x\n', 'yaml: cannot decode !!str `x` as a !!int'],
  ['? [1]\n: 2\n', 'yaml: line 1: a key must be a scalar'],
  [`a: ${'['.repeat(200)}${']'.repeat(200)}`, 'yaml: exceeded max depth of 100'],
  ['['.repeat(100_000), 'yaml: exceeded max depth'],
];
for (const [text, message] of refused) {
  test(`${JSON.stringify(text.slice(0, 24))}: ${message}`, async () => {
    await assert.rejects(readYaml(text), { name: 'ConfigError', message });
  });
}

test('a bomb of aliases or merges is refused', async () => {
  const levels = Array.from({ length: 9 }, (_, i) => `l${i + 1}: &l${i + 1} [${`*l${i},`.repeat(10)}]`);
  const message = 'yaml: document contains excessive aliasing';
  await assert.rejects(readYaml(`l0: &l0 x\n${levels.join('\n')}\n`), { message });
  const wide = Array.from({ length: 2000 }, (_, i) => `k${i}: 0`).join(', ');
  await assert.rejects(readYaml(`a: &a {${wide}}\nb: [${'{<<: *a},'.repeat(1000)}]\n`), { message });
});
