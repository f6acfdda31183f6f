import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { test } from 'node:test';
import { linkChain } from './link-chain.ts';

function withDirectory(run: (directory: string) => void): void {
  const directory = realpathSync(mkdtempSync(join(tmpdir(), 'kpt-chain-')));
  try {
    run(directory);
  } finally {
    rmSync(directory, { recursive: true });
  }
}

/** The chain with directories relative to the test's own. */
function chainOf(directory: string, path: string): Record<string, string[] | 'all'> {
  const entries = [...linkChain(path)].map(([dir, names]) => [
    relative(directory, dir),
    names === 'all' ? names : [...names],
  ]);
  return Object.fromEntries(entries);
}

test('a plain file, present or missing', () =>
  withDirectory((dir) => {
    writeFileSync(join(dir, 'a'), '');
    assert.deepEqual(chainOf(dir, join(dir, 'a')), { '': ['a'] });
    assert.deepEqual(chainOf(dir, join(dir, 'b')), { '': ['b'] });
    assert.deepEqual(chainOf(dir, join(dir, 'no/such/file')), { '': ['no'] });
    assert.deepEqual(chainOf(dir, join(dir, 'a/below')), { '': ['a'] });
    assert.deepEqual(chainOf(dir, relative(process.cwd(), join(dir, 'a'))), { '': ['a'] });
  }));

test('the links of a ConfigMap volume', () =>
  withDirectory((dir) => {
    mkdirSync(join(dir, '..2026'));
    writeFileSync(join(dir, '..2026/config.conf'), '');
    symlinkSync('..2026', join(dir, '..data'));
    symlinkSync('..data/config.conf', join(dir, 'config.conf'));
    const chain = { '': ['config.conf', '..data'], '..2026': ['config.conf'] };
    assert.deepEqual(chainOf(dir, join(dir, 'config.conf')), chain);
  }));

test('all entries of a directory, and the links that lead to it', () =>
  withDirectory((dir) => {
    mkdirSync(join(dir, 'a'));
    symlinkSync('a', join(dir, 'b'));
    assert.deepEqual(chainOf(dir, join(dir, 'a')), { a: 'all' });
    assert.deepEqual(chainOf(dir, `${dir}/b/`), { '': ['b'], a: 'all' });
  }));

test('absolute links, links upwards and broken links', () =>
  withDirectory((dir) => {
    mkdirSync(join(dir, 'a/b'), { recursive: true });
    mkdirSync(join(dir, 'c'));
    writeFileSync(join(dir, 'c/file'), '');
    symlinkSync(join(dir, 'c'), join(dir, 'a/absolute'));
    symlinkSync('../../c/file', join(dir, 'a/b/upwards'));
    symlinkSync('nowhere', join(dir, 'broken'));
    assert.deepEqual(chainOf(dir, join(dir, 'a/absolute/file')), { a: ['absolute'], c: ['file'] });
    assert.deepEqual(chainOf(dir, join(dir, 'a/b/upwards')), { 'a/b': ['upwards'], c: ['file'] });
    assert.deepEqual(chainOf(dir, join(dir, 'broken')), { '': ['broken', 'nowhere'] });
  }));

test('a cycle of links terminates', () =>
  withDirectory((dir) => {
    symlinkSync('b', join(dir, 'a'));
    symlinkSync('a', join(dir, 'b'));
    assert.deepEqual(chainOf(dir, join(dir, 'a')), { '': ['a', 'b'] });
  }));
