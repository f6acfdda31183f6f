/** The functions that a build compiles for kube-proxy where it cannot start the program. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { cpSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { test } from 'node:test';
import { writeCodeCache } from '../../scripts/code-cache/build.ts';

const dist = resolve(import.meta.dirname, '../../dist');
/** Says whether V8, with the launcher's flags, takes the cache. */
const look = `
  const { readFileSync } = require('node:fs');
  const source = readFileSync('kube-proxy.bundle', 'latin1');
  const digest = source.slice(source.lastIndexOf('//') + 2);
  const cache = readFileSync('kube-proxy.cache');
  const cachedData = cache.subarray(digest.length);
  const { cachedDataRejected } = new (require('node:vm').Script)(source, { cachedData });
  console.log(cache.latin1Slice(0, digest.length) === digest, cachedDataRejected);`;

test('a build that cannot start the program writes a cache of all functions, which V8 takes', (t) => {
  const directory = mkdtempSync(join(tmpdir(), 'kpt-code-cache-'));
  t.after(() => rmSync(directory, { recursive: true }));
  cpSync(join(dist, 'kube-proxy.bundle'), join(directory, 'kube-proxy.bundle'));
  const { PATH } = process.env;
  process.env.PATH = directory;
  try {
    assert.equal(writeCodeCache(directory), 'all functions');
  } finally {
    process.env.PATH = PATH;
  }
  const options = { cwd: directory, encoding: 'utf8' } as const;
  const args = ['--max-semi-space-size=2', '--v8-pool-size=1', '--input-type=commonjs', '-e', look];
  assert.equal(execFileSync(process.execPath, args, options), 'true false\n');
});
