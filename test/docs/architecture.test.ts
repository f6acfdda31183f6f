import assert from 'node:assert/strict';
import { existsSync, globSync, readdirSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { test } from 'node:test';

const root = resolve(import.meta.dirname, '../..');

test('architecture.md has a row for every folder of src/, and for no other', () => {
  const page = readFileSync(join(root, 'docs/architecture.md'), 'utf8');
  const rows = [...page.matchAll(/^\| (`src\/.*?) \|/gm)].flatMap(([, cell = '']) =>
    [...cell.matchAll(/`src\/([\w-]+)\//g)].map(([, folder]) => folder ?? ''),
  );
  const folders = readdirSync(join(root, 'src'), { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => name);
  assert.deepEqual(rows.toSorted(), folders.toSorted());
});

test('files and folders of the repository that pages name exist', () => {
  const pages = ['README.md', 'CONTRIBUTING.md', ...globSync('docs/*.md', { cwd: root })];
  const missing = pages.flatMap((page) =>
    [
      ...readFileSync(join(root, page), 'utf8').matchAll(
        /`((?:src|test|bench|scripts|bin|examples)\/[\w./-]+)`/g,
      ),
    ]
      .map(([, path = '']) => path)
      // Results of a run are not in the repository.
      .filter((path) => !path.startsWith('bench/results') && !existsSync(join(root, path)))
      .map((path) => `${page}: ${path}`),
  );
  assert.deepEqual(missing, []);
});
