import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { test } from 'node:test';
import { packLayer, readArchiveNames, writeArchive } from './images/archive.ts';
import { findPrograms, missingPrograms } from './programs.ts';

const script = resolve(import.meta.dirname, '../../scripts/test-cluster.ts');
/** Programs where the release archives put them. */
const unpacked = [
  ...['kube-apiserver', 'kube-controller-manager', 'kube-scheduler', 'kubelet', 'kubectl', 'kube-proxy'].map(
    (name) => `kubernetes/server/bin/${name}`,
  ),
  ...['e2e.test', 'ginkgo'].map((name) => `kubernetes/test/bin/${name}`),
  'etcd-v3.6.6-linux-amd64/etcd',
  'coredns',
];

function folderWith(t: { after(f: () => void): void }, files: readonly string[]): string {
  const directory = mkdtempSync(join(tmpdir(), 'kpt-programs-'));
  t.after(() => rmSync(directory, { recursive: true }));
  for (const file of files) {
    mkdirSync(dirname(join(directory, file)), { recursive: true });
    writeFileSync(join(directory, file), '#!/bin/sh\n', { mode: 0o755 });
  }
  return directory;
}

test('programs are found where the release archives put them', (t) => {
  const directory = folderWith(t, [...unpacked, 'agnhost']);
  const found = findPrograms(directory);
  assert.equal(found.programs.get('kubelet'), join(directory, 'kubernetes/server/bin/kubelet'));
  assert.deepEqual(missingPrograms(found, true), []);
});

test('every missing program is named with the archive that has it', (t) => {
  const directory = folderWith(
    t,
    unpacked.filter((file) => !/kubelet|ginkgo|etcd|kube-proxy/.test(file)),
  );
  const lines = missingPrograms(findPrograms(directory), true);
  assert.deepEqual(
    lines.map((line) => line.split(':')[0]?.trim()),
    ['kubelet', 'ginkgo', 'etcd', 'kube-proxy (to compare with, and to migrate from)', 'agnhost'],
  );
  assert.match(lines[0] ?? '', /kubernetes-server-linux-amd64\.tar\.gz/);
  assert.match(lines[1] ?? '', /kubernetes-test-linux-amd64\.tar\.gz/);
});

test("upstream's kube-proxy is needed only for comparisons", (t) => {
  const directory = folderWith(t, ['agnhost', ...unpacked.filter((file) => !file.endsWith('kube-proxy'))]);
  assert.deepEqual(missingPrograms(findPrograms(directory), false), []);
});

test('an image archive of agnhost takes the place of the program', (t) => {
  const directory = folderWith(t, unpacked);
  mkdirSync(join(directory, 'images'));
  mkdirSync(join(directory, 'files'));
  const name = 'images.example/agnhost:2.0';
  const layers = [packLayer(join(directory, 'files'), join(directory, 'layer'))];
  const file = join(directory, 'images/agnhost.tar');
  writeArchive(file, { names: [name], layers, entrypoint: ['/agnhost'], env: {} });
  assert.deepEqual(readArchiveNames(file), [name]);
  const found = findPrograms(directory);
  assert.deepEqual([...found.archives], [[file, [name]]]);
  assert.deepEqual(missingPrograms(found, false), []);
});

test('the command without programs says what to fetch and ends with status 2', (t) => {
  const { status, stderr } = spawnSync(process.execPath, [script], { encoding: 'utf8' });
  assert.equal(status, 2);
  assert.match(stderr, /give a folder with --binaries DIR; programs that belong there/);
  for (const name of ['kube-apiserver', 'kubelet', 'e2e.test', 'etcd', 'coredns', 'agnhost'])
    assert.match(stderr, new RegExp(`^  ${name}: in `, 'm'));
  const directory = folderWith(t, ['etcd']);
  const second = spawnSync(process.execPath, [script, '--binaries', directory], { encoding: 'utf8' });
  assert.equal(second.status, 2);
  assert.match(second.stderr, new RegExp(`missing in ${directory}; programs that belong there`));
  assert.doesNotMatch(second.stderr, /^ {2}etcd:/m);
});
