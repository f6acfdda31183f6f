import assert from 'node:assert/strict';
import { globSync } from 'node:fs';
import { resolve } from 'node:path';
import { describe, test } from 'node:test';
import { type Project, selectTests } from './selection.ts';
import { type Row, table } from './table.ts';

const references: Readonly<Record<string, readonly string[]>> = {
  'src/a.test.ts': ['src/a.ts'],
  'src/a.ts': ['src/lib.ts'],
  'src/b.test.ts': ['src/b.ts', 'test/vectors/b'],
  'src/b.ts': ['src/a.ts', 'src/b.ts'],
  'test/run.test.ts': ['test/run.ts'],
  'test/run.ts': ['bin/run'],
};
const tests = ['src/a.test.ts', 'src/b.test.ts', 'test/run.test.ts', 'test/mode.test.ts'];

function select(changed: readonly string[], rows: readonly Row[] = []) {
  const files = [...Object.keys(references), ...tests, 'src/lib.ts', 'src/mode/x.ts', 'new.txt'];
  const project: Project = { files, tests, references: (file) => references[file] ?? [], table: rows };
  return selectTests(project, changed);
}

test('a changed file chooses the tests that import it, directly or through others', () => {
  assert.deepEqual(select(['src/b.ts']).tests, ['src/b.test.ts']);
  assert.deepEqual(select(['src/lib.ts']).tests, ['src/a.test.ts', 'src/b.test.ts']);
  assert.equal(select(['src/lib.ts']).reasons[0]?.importedBy, 2);
});

test('a changed test chooses itself', () => {
  assert.deepEqual(select(['test/run.test.ts']).tests, ['test/run.test.ts']);
});

test('recorded data chooses the tests that name its folder', () => {
  assert.deepEqual(select(['test/vectors/b/one.json']).tests, ['src/b.test.ts']);
});

test('a row of the table adds the tests that start the program', () => {
  const { tests: chosen } = select(['src/a.ts'], [['src/', ['test/run']]]);
  assert.deepEqual(chosen, ['src/a.test.ts', 'src/b.test.ts', 'test/run.test.ts']);
});

test('of several rows that fit a file, the row with the longest path counts', () => {
  const rows: readonly Row[] = [
    ['src/', 'everything'],
    ['src/mode/', ['test/mode']],
  ];
  assert.deepEqual(select(['src/mode/x.ts'], rows).tests, ['test/mode.test.ts']);
});

test('a row can choose all tests', () => {
  assert.deepEqual(select(['new.txt'], [['new', 'everything']]).tests, tests);
});

test('a file without a row and without references chooses all tests and is reported as unknown', () => {
  const { tests: chosen, reasons } = select(['new.txt']);
  assert.deepEqual(chosen, tests);
  assert.deepEqual(reasons, [{ changed: 'new.txt', importedBy: 0, isUnknown: true }]);
});

test('a deleted file chooses only the tests that the table names', () => {
  assert.deepEqual(select(['src/gone.ts']).tests, []);
  assert.deepEqual(select(['src/gone.ts'], [['src/', ['test/run']]]).tests, ['test/run.test.ts']);
});

test('no change chooses no test', () => {
  assert.deepEqual(select([]), { tests: [], reasons: [] });
});

describe('the table of this project', () => {
  const root = resolve(import.meta.dirname, '../..');
  const testFiles = globSync('{src,bench,test}/**/*.test.ts', { cwd: root });

  test('has a row for every folder of src/ and every mode', () => {
    const folders = globSync(['src/*/', 'src/backends/*/'], { cwd: root }).filter(
      (path) => !path.includes('.'),
    );
    const missing = folders.filter((folder) => !table.some(([changed]) => `${folder}/`.startsWith(changed)));
    assert.ok(folders.length > 20);
    assert.deepEqual(missing, []);
  });

  test('names only tests and folders that exist', () => {
    const named = new Set(table.flatMap(([, named]) => (named === 'everything' ? [] : named)));
    const stale = [...named].filter((beginning) => !testFiles.some((file) => file.startsWith(beginning)));
    assert.deepEqual(stale, []);
    const folders = table.map(([changed]) => changed).filter((path) => path.endsWith('/'));
    assert.deepEqual(
      folders.filter((folder) => globSync(`${folder}*`, { cwd: root }).length === 0),
      [],
    );
  });

  test('names every system test that starts the program', () => {
    const named = table.flatMap(([, named]) => (named === 'everything' ? [] : named));
    const system = testFiles.filter((file) => file.startsWith('test/') && file.split('/').length > 2);
    const own = ['test/changed/', 'test/plan/', 'test/cluster/', 'test/kernel/', 'test/soak/model/'];
    const forgotten = system.filter(
      (file) => ![...named, ...own].some((beginning) => file.startsWith(beginning)),
    );
    assert.deepEqual(forgotten, []);
  });
});
