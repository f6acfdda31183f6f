import assert from 'node:assert/strict';
import { test } from 'node:test';
import { buildInfo, noVersionRequest, type VersionRequest, versionFlag, versionText } from './version.ts';

const runtime = { version: 'v24.1.2', platform: 'linux', arch: 'x64' };

function given(...texts: string[]): VersionRequest {
  return texts.reduce((request, text) => versionFlag.parse(text, request, false), noVersionRequest);
}

test('--version prints one line, --version=false nothing', () => {
  assert.equal(versionText(noVersionRequest), undefined);
  assert.equal(versionText(given('true')), 'Kubernetes v1.37.0');
  assert.equal(versionText(given('true', 'false')), undefined);
});

test('--version=raw prints the Go structure, with the version and the commit of this program', () => {
  const product = { version: '0.9.0', commit: '0123abc', treeState: 'dirty', date: '2026-01-02' } as const;
  assert.equal(
    versionText(given('raw'), runtime, product),
    'version.Info{Major:"1", Minor:"37", EmulationMajor:"", EmulationMinor:"", MinCompatibilityMajor:"", ' +
      'MinCompatibilityMinor:"", GitVersion:"v1.37.0", GitCommit:"0123abc", GitTreeState:"dirty", ' +
      'BuildDate:"2026-01-02", GoVersion:"node-v24.1.2", Compiler:"v8", Platform:"linux/amd64", ' +
      'Product:"kube-proxy-ts 0.9.0"}',
  );
});

test('a version of the built-in release is used, and the program runs', () => {
  for (const text of ['v1.37.0', 'v1.37.0-mine', 'v1.37.0-rc.1+abc']) {
    assert.equal(versionText(given(text)), undefined);
    assert.equal(given(text).gitVersion, text);
  }
  assert.equal(versionText(given('v1.37.0-mine', 'true')), 'Kubernetes v1.37.0-mine');
});

test('another release is refused', () => {
  assert.throws(() => given('v1.36.0'), {
    message: 'version "v1.36.0" must match major/minor/patch of default version "v1.37.0"',
  });
  assert.throws(() => given('v1.37.1-mine'), { message: /must match/ });
  const malformed: [text: string, message: string][] = [
    ['vx', 'could not parse "vx" as version'],
    ['v1.37', 'illegal version string "v1.37"'],
    ['v1.37.0.1', 'illegal version string "v1.37.0.1"'],
    ['v1.37.0-', 'could not parse pre-release/metadata (-) in version "v1.37.0-"'],
    ['v1.37.0-a..b', 'could not parse pre-release/metadata (-a..b) in version "v1.37.0-a..b"'],
    ['v01.37.0', 'illegal zero-prefixed version component "01" in "v01.37.0"'],
    ['v1.37.0-01', 'illegal zero-prefixed version component "01" in "v1.37.0-01"'],
  ];
  for (const [text, message] of malformed) assert.throws(() => given(text), { message });
  assert.throws(() => given('1.37.0'), { message: 'strconv.ParseBool: parsing "1.37.0": invalid syntax' });
});

test('build information names platform and architecture as Go does', () => {
  assert.equal(buildInfo(undefined, runtime).platform, 'linux/amd64');
  assert.equal(buildInfo(undefined, { ...runtime, arch: 'arm64' }).platform, 'linux/arm64');
  assert.equal(buildInfo('v1.37.0-mine', runtime).gitVersion, 'v1.37.0-mine');
  assert.equal(buildInfo().goVersion, `node-${process.version}`);
});
