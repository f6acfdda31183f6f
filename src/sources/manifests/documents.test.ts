import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { FakeClock } from '../../../test/fake-clock.ts';
import { ManifestError, parsePath, parseYaml } from './documents.ts';

async function faultOf(text: string): Promise<ManifestError> {
  const error = await parseYaml(text, new FakeClock()).then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  assert.ok(error instanceof ManifestError, String(error));
  return error;
}

test('documents are split, empty ones skipped, merge keys resolved', async () => {
  const text = '---\na: &x {p: 1}\nb:\n  <<: *x\n  q: 2\n---\n# nothing\n---\n---\n{"c": [3]}\n...\n';
  const documents = await parseYaml(text, new FakeClock());
  assert.deepEqual(
    documents.map(({ raw }) => raw),
    [{ a: { p: 1 }, b: { p: 1, q: 2 } }, { c: [3] }],
  );
  assert.deepEqual(await parseYaml('', new FakeClock()), []);
  assert.deepEqual(await parseYaml('# only\n', new FakeClock()), []);
});

test('positions of values, or of their nearest parent, are found', async () => {
  const [first, second] = await parseYaml(
    'kind: A\n---\nspec:\n  ports:\n  - port: 80\n    name: x\n',
    new FakeClock(),
  );
  assert.ok(first && second);
  assert.deepEqual(first.locate([]), { line: 1, column: 1 });
  assert.deepEqual(second.locate(['spec', 'ports', 0, 'name']), { line: 6, column: 11 });
  assert.deepEqual(second.locate(['spec', 'ports', 0]), { line: 5, column: 5 });
  assert.deepEqual(second.locate(['spec', 'ports', 0, 'protocol']), { line: 5, column: 5 }, 'absent');
  assert.deepEqual(second.locate(['spec', 'ports', 7, 'name']), { line: 5, column: 3 }, 'past the end');
  assert.deepEqual(second.locate(['metadata', 'name']), { line: 3, column: 1 }, 'nothing of it');
});

for (const [name, text, line, column] of [
  ['an open bracket', 'a: 1\n---\nb: [1\nc: 2\n', 4, 1],
  ['a nested mapping on one line', 'a: 1\nb: c: d\n', 2, 4],
  ['a key twice', 'a: 1\nb: 2\na: 3\n', 3, 1],
  ['an unknown alias, at its document', 'a: 1\n---\nb: *nowhere\n', 3, 1],
] as const) {
  test(`${name} is reported with its position`, async () => {
    const { position, message } = await faultOf(text);
    assert.deepEqual(position, { line, column }, message);
  });
}

test('a bomb of aliases is refused', async () => {
  const level = (name: string, of: string) => `${name}: &${name} [${Array(9).fill(`*${of}`).join(', ')}]\n`;
  const bomb = `a: &a [x]\n${level('b', 'a')}${level('c', 'b')}${level('d', 'c')}${level('e', 'd')}`;
  assert.match((await faultOf(bomb)).message, /alias/i);
});

test('very deep nesting is refused', async () => {
  await faultOf('['.repeat(50_000));
});

test('the parser throws nothing but ManifestError', async () => {
  const token = fc.constantFrom(
    ': ',
    '- ',
    '\n',
    '  ',
    '---\n',
    '[',
    ']',
    '{',
    '}',
    '&a ',
    '*a',
    '|',
    '>',
    '"',
    "'",
    '#',
    '<<',
    '!',
    '%',
    ',',
    'x',
  );
  await fc.assert(
    fc.asyncProperty(
      fc.oneof(
        fc.string({ unit: 'binary' }),
        fc.array(token).map((t) => t.join('')),
      ),
      async (text) => {
        await parseYaml(text, new FakeClock()).catch((error: unknown) => {
          assert.ok(error instanceof ManifestError, String(error));
          assert.ok(error.position && error.position.line >= 1 && error.position.column >= 1);
        });
      },
    ),
    { numRuns: 500 },
  );
});

test('field paths are split into keys and indexes', () => {
  assert.deepEqual(parsePath('spec.ports[0].port'), ['spec', 'ports', 0, 'port']);
  assert.deepEqual(parsePath('metadata.labels["a.b/c"]'), ['metadata', 'labels', 'a.b/c']);
  assert.deepEqual(parsePath('metadata.labels["a\\"]["]'), ['metadata', 'labels', 'a"][']);
  assert.deepEqual(parsePath('items[12]'), ['items', 12]);
  assert.deepEqual(parsePath(''), []);
});
