/** What a build says about its version and commit. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { appendFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { builtProduct } from '../../scripts/product.ts';
import { hasProgram } from '../cluster/lab/namespace.ts';

const skip = hasProgram('git', '--version') ? false : 'needs the program git';

test('a build takes its commit from git, or from the environment, and says when it knows none', {
  skip,
}, (t) => {
  const root = mkdtempSync(join(tmpdir(), 'kpt-product-'));
  t.after(() => rmSync(root, { recursive: true }));
  const git = (...args: string[]) => {
    const identity = ['-c', 'user.name=t', '-c', 'user.email=t@example.org'];
    const { status, stdout, stderr } = spawnSync('git', ['-C', root, ...identity, ...args], {
      encoding: 'utf8',
    });
    assert.equal(status, 0, stderr);
    return stdout.trim();
  };
  const manifest = join(root, 'package.json');
  writeFileSync(manifest, '{"version": "1.2.3"}');
  const unknown = { version: '1.2.3', commit: 'unknown', treeState: 'unknown', date: 'unknown' };
  assert.deepEqual(builtProduct(root, {}), unknown);
  git('init', '--quiet');
  assert.deepEqual(builtProduct(root, {}), unknown);
  git('add', '.');
  git('commit', '--quiet', '--message', 'x', '--date', '2026-01-02T03:04:05Z');
  const commit = git('rev-parse', 'HEAD');
  const date = new Date(git('show', '--no-patch', '--format=%cI')).toISOString().replace('.000', '');
  writeFileSync(join(root, 'untracked'), '');
  assert.deepEqual(builtProduct(root, {}), { version: '1.2.3', commit, treeState: 'clean', date });
  appendFileSync(manifest, '\n');
  assert.deepEqual(builtProduct(root, {}), { version: '1.2.3', commit, treeState: 'dirty', date });
  const given = { version: '1.2.3', commit: 'abc', date: 'unknown' };
  assert.deepEqual(builtProduct(root, { KPT_COMMIT: 'abc' }), { ...given, treeState: 'clean' });
  assert.deepEqual(builtProduct(root, { KPT_COMMIT: 'abc+dirty' }), { ...given, treeState: 'dirty' });
  assert.deepEqual(builtProduct(root, { KPT_COMMIT: 'unknown' }), unknown);
  const inside = join(root, 'unpacked');
  mkdirSync(inside);
  writeFileSync(join(inside, 'package.json'), '{"version": "1.2.3"}');
  assert.deepEqual(builtProduct(inside, {}), unknown, 'the repository around it is not its own');
});
