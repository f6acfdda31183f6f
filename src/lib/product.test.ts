import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { product, productText } from './product.ts';

test('from its sources the program knows its version and says that the commit is unknown', () => {
  const manifest: { version: string } = JSON.parse(
    readFileSync(new URL('../../package.json', import.meta.url), 'utf8'),
  );
  assert.equal(product.version, manifest.version);
  assert.equal(productText(product), `kube-proxy-ts ${manifest.version}, unknown commit`);
});

test('a commit is shortened, and marked when the sources had changes that were not committed', () => {
  const commit = '0123456789abcdef0123456789abcdef01234567';
  const text = (treeState: 'clean' | 'dirty') => productText({ version: '1.2.3', commit, treeState });
  assert.equal(text('clean'), 'kube-proxy-ts 1.2.3, commit 0123456789ab');
  assert.equal(text('dirty'), 'kube-proxy-ts 1.2.3, commit 0123456789ab+dirty');
});
