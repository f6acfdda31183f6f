import { accessSync, constants, globSync, readdirSync, statSync } from 'node:fs';
import { basename, join } from 'node:path';
import { readArchiveNames } from './images/archive.ts';

/** Something that the folder of the user has to hold. */
interface Need {
  /** The archive of an official release that has it. */
  readonly from: string;
  readonly why?: string;
}

const server = 'kubernetes-server-linux-amd64.tar.gz of the Kubernetes release';
const tests = 'kubernetes-test-linux-amd64.tar.gz of the same Kubernetes release';

const needs: Readonly<Record<string, Need>> = {
  'kube-apiserver': { from: server },
  'kube-controller-manager': { from: server },
  'kube-scheduler': { from: server },
  kubelet: { from: server },
  kubectl: { from: server },
  'e2e.test': { from: tests },
  ginkgo: { from: tests },
  etcd: { from: 'etcd-v3.6.*-linux-amd64.tar.gz of the etcd release (3.5 or later)' },
  coredns: { from: 'coredns_*_linux_amd64.tgz of the CoreDNS release' },
};

const upstreamProxy: Need = { from: server, why: 'to compare with, and to migrate from' };
const agnhost: Need = {
  from: 'no release archive: save the image agnhost, under the name that `e2e.test --list-images` prints, to images/agnhost.tar (docker save), or put the program agnhost here',
};

/** Programs that come from Debian packages when the folder has none. */
export const fromDebian: readonly string[] = [
  'containerd',
  'containerd-shim-runc-v2',
  'ctr',
  'runc',
  'bridge',
  'host-local',
  'loopback',
  'portmap',
];

/** The programs and image archives that a folder holds. */
export interface Found {
  /** Paths by name. */
  readonly programs: ReadonlyMap<string, string>;
  /** Files in the folder `images`, and the names of the images in each. */
  readonly archives: ReadonlyMap<string, readonly string[]>;
}

/** Looks into a folder, and into the folders that unpacked release archives make there. */
export function findPrograms(directory: string): Found {
  const wanted = new Set([
    ...Object.keys(needs),
    ...fromDebian,
    'kube-proxy',
    'agnhost',
    'regression-issue-74839',
  ]);
  const programs = new Map<string, string>();
  for (const path of filesBelow(directory, 4)) {
    const name = basename(path);
    if (wanted.has(name) && !programs.has(name) && isExecutable(path)) programs.set(name, path);
  }
  const archives = globSync('images/*.tar', { cwd: directory }).map((file) => join(directory, file));
  return { programs, archives: new Map(archives.map((file) => [file, readArchiveNames(file)])) };
}

/** Explains what is missing, line by line. Empty when nothing is. */
export function missingPrograms({ programs, archives }: Found, needsUpstream: boolean): string[] {
  const all = { ...needs, ...(needsUpstream && { 'kube-proxy': upstreamProxy }) };
  const lines = Object.entries(all)
    .filter(([name]) => !programs.has(name))
    .map(([name, { from, why }]) => `  ${name}${why ? ` (${why})` : ''}: in ${from}`);
  const images = [...archives.values()].flat();
  const hasAgnhost = programs.has('agnhost') || images.some((name) => /\/agnhost:/.test(name));
  return hasAgnhost ? lines : [...lines, `  agnhost: in ${agnhost.from}`];
}

/** Not deeper than `depth`, and not into the source tree of anything. */
function* filesBelow(directory: string, depth: number): Generator<string> {
  const entries = readdirSync(directory, { withFileTypes: true }).sort((a, b) => (a.name < b.name ? -1 : 1));
  for (const entry of entries) {
    const path = join(directory, entry.name);
    if (entry.isDirectory()) {
      if (depth > 1 && entry.name !== '.git') yield* filesBelow(path, depth - 1);
    } else yield path;
  }
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}
