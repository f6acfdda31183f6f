import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { join, relative, resolve } from 'node:path';
import { describe, test } from 'node:test';
import { brokenLinks } from './broken-links.ts';
import { anchorsOf, linksOf } from './markdown.ts';

const root = resolve(import.meta.dirname, '../..');
const pages = globSync('**/*.md', {
  cwd: root,
  exclude: ['**/node_modules', 'dist', 'bench/results', 'test/vectors', 'vm-out'],
}).map((file) => join(root, file));

test('every relative link in the repository leads to a file, and to a heading of it', () => {
  assert.ok(pages.length > 10);
  assert.deepEqual(brokenLinks(root, pages), []);
});

test('every npm script that a page names exists', () => {
  const { scripts } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
    scripts: Record<string, string>;
  };
  const missing = pages.flatMap((page) =>
    [...readFileSync(page, 'utf8').matchAll(/npm (?:run (?:--silent )?([\w:-]+)|(start|test)\b)/g)]
      .map(([, run, short]) => run ?? short ?? '')
      .filter((name) => !(name in scripts))
      .map((name) => `${relative(root, page)}: npm run ${name}`),
  );
  assert.deepEqual(missing, []);
});

describe('Markdown', () => {
  test('links are found in text and images, not in code', () => {
    const text = '[a](b.md) ![c](d.svg) `[no](x.md)`\n```\n[no](y.md)\n```\n[e](f.md#g "title")';
    assert.deepEqual(linksOf(text), ['b.md', 'd.svg', 'f.md#g']);
  });

  test('anchors are made as GitHub makes them', () => {
    const text = '# A, "b" and `c-d`\n## Two\n## Two\n```\n# no heading\n```\n### [Link](x.md) × end';
    assert.deepEqual([...anchorsOf(text)], ['a-b-and-c-d', 'two', 'two-1', 'link--end']);
  });
});
