import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { copyDebian } from '../../../scripts/image/debian-files.ts';
import { TestAuthority } from '../../cluster/apiserver/certificates.ts';
import type { Found } from '../programs.ts';
import { type Layer, packLayer, writeArchive } from './archive.ts';
import { identityOf, makeOnce } from './made-once.ts';

/** Commands that pods of the tests call, and the Debian package of each. */
export const podTools: Readonly<Record<string, string>> = {
  curl: 'curl',
  'nc.openbsd': 'netcat-openbsd',
  ss: 'iproute2',
  conntrack: 'conntrack',
  socat: 'socat',
  dig: 'bind9-dnsutils',
  iptables: 'iptables',
  nft: 'nftables',
  ps: 'procps',
  ping: 'iputils-ping',
  busybox: 'busybox-static',
};

const wget = join(import.meta.dirname, 'wget');

/** Links that the scripts of Debian packages make. */
const alternatives: Readonly<Record<string, string>> = {
  nc: '/bin/nc.openbsd',
  awk: '/usr/bin/mawk',
  which: '/usr/bin/which.debianutils',
  ...Object.fromEntries(
    ['iptables', 'ip6tables'].flatMap((family) =>
      ['', '-save', '-restore'].map((suffix) => [`${family}${suffix}`, `/usr/sbin/${family}-nft${suffix}`]),
    ),
  ),
};

/** The first process of a pod: it ends when asked to, and waits for orphans. */
const pauseCommand = ['/bin/sh', '-c', 'trap "exit 0" TERM INT; while :; do sleep 86400 & wait $!; done'];

/** The name of the image of upstream's kube-proxy in the nodes. */
export const upstreamImage = 'kube-proxy-upstream:test';
export const corednsImage = 'coredns:test';

interface Base {
  readonly debian: Layer;
  readonly busybox: Layer;
}

/**
 * Makes the archives of images that the tests ask for and the user's folder lacks, from Debian packages of this machine
 * and the programs of the folder. Returns the files of all archives for the nodes.
 */
export function testImages(found: Found, directory: string, needsUpstream: boolean): string[] {
  const asked = listImages(found);
  const given = new Set([...found.archives.values()].flat());
  const namesOf = (...repositories: readonly string[]): string[] =>
    asked.filter(
      (name) => repositories.some((repository) => name.includes(`/${repository}:`)) && !given.has(name),
    );
  const recipes: Readonly<Record<string, Recipe>> = {
    pause: { names: namesOf('pause'), layers: ({ busybox }) => [busybox], entrypoint: pauseCommand },
    busybox: {
      names: namesOf('busybox'),
      layers: ({ busybox }) => [busybox],
      entrypoint: [],
      command: ['sh'],
    },
    agnhost: {
      names: namesOf('agnhost', 'distroless-iptables', 'glibc-dns-testing'),
      layers: ({ debian }) => [debian],
      program: 'agnhost',
      entrypoint: ['/agnhost'],
      // Pods that only wait for commands name none.
      command: ['pause'],
    },
    'regression-issue-74839': {
      names: namesOf('regression-issue-74839'),
      layers: () => [],
      program: 'regression-issue-74839',
      entrypoint: ['/regression-issue-74839'],
    },
    coredns: { names: [corednsImage], layers: () => [], program: 'coredns', entrypoint: ['/coredns'] },
    upstream: {
      names: needsUpstream ? [upstreamImage] : [],
      layers: ({ debian }) => [debian],
      program: 'kube-proxy',
      at: 'usr/local/bin/kube-proxy',
      entrypoint: ['/usr/local/bin/kube-proxy'],
    },
  };
  const base = lazyBase(directory);
  const made = Object.entries(recipes).flatMap(([name, recipe]) =>
    make(name, recipe, found, directory, base),
  );
  return [...found.archives.keys(), ...made];
}

/** The full name under which the tests know an image. */
export function imageNamed(found: Found, repository: string): string {
  const name = listImages(found).find((each) => each.includes(`/${repository}:`));
  if (name === undefined) throw new Error(`e2e.test --list-images names no image ${repository}`);
  return name;
}

interface Recipe {
  readonly names: readonly string[];
  readonly layers: (base: Base) => readonly Layer[];
  /** A program of the user's folder, for the top layer. */
  readonly program?: string;
  /** Where the program belongs in the image; in `/` when absent. */
  readonly at?: string;
  readonly entrypoint: readonly string[];
  readonly command?: readonly string[];
}

function make(name: string, recipe: Recipe, found: Found, directory: string, base: () => Base): string[] {
  const program = recipe.program === undefined ? undefined : found.programs.get(recipe.program);
  if (recipe.names.length === 0 || (recipe.program !== undefined && program === undefined)) return [];
  const file = join(directory, `${name}.tar`);
  const { names, entrypoint, command = [] } = recipe;
  const from = program === undefined ? {} : identityOf(program);
  makeOnce(file, { names, entrypoint, command, from, sources: sourcesDigest() }, () => {
    console.log(`making the image ${names[0]}`);
    const layers = [...recipe.layers(base())];
    if (program !== undefined)
      layers.push(programLayer(program, recipe.at ?? recipe.program ?? '', directory));
    writeArchive(file, { names, layers, entrypoint, command, env: {} });
  });
  return [file];
}

/** Changes when a layer may be made in another way than before. */
function sourcesDigest(): string {
  const sources = [import.meta.filename, wget].map((file) => readFileSync(file));
  return createHash('sha256').update(Buffer.concat(sources)).digest('hex');
}

function listImages({ programs }: Found): string[] {
  const e2e = programs.get('e2e.test') ?? '';
  // In another order at every call.
  return execFileSync(e2e, ['--list-images'], { encoding: 'utf8' }).split(/\s+/).filter(Boolean).sort();
}

/** Layers that images share, made at the first use. */
function lazyBase(directory: string): () => Base {
  let base: Base | undefined;
  return () => {
    base ??= {
      debian: layerOf(directory, 'debian', layOutDebian),
      busybox: layerOf(directory, 'busybox', (root) => layOutBusybox(root, 'bin', () => true)),
    };
    return base;
  };
}

function programLayer(program: string, at: string, directory: string): Layer {
  return layerOf(directory, `program-${at.replaceAll('/', '-')}`, (root) => {
    mkdirSync(join(root, dirname(at)), { recursive: true });
    copyFileSync(program, join(root, at));
    chmodSync(join(root, at), 0o755);
    if (at === 'agnhost') addAgnhostFiles(root);
  });
}

/** What agnhost expects beside itself: its second name, a folder for uploads and a certificate. */
function addAgnhostFiles(root: string): void {
  symlinkSync('agnhost', join(root, 'agnhost-2'));
  mkdirSync(join(root, 'uploads'));
  chmodSync(join(root, 'uploads'), 0o1777);
  const authority = new TestAuthority();
  const { cert, key } = authority.server();
  authority.remove();
  writeFileSync(join(root, 'localhost.crt'), cert);
  writeFileSync(join(root, 'localhost.key'), key);
}

function layerOf(directory: string, name: string, layOut: (root: string) => void): Layer {
  const root = mkdtempSync(join(directory, `.${name}-`));
  chmodSync(root, 0o755);
  try {
    layOut(root);
    return packLayer(root, join(directory, `${name}.layer`));
  } finally {
    rmSync(root, { recursive: true });
  }
}

/** Debian with the tools of the tests. Upstream's image is Alpine: what that has and Debian lacks comes from busybox. */
function layOutDebian(root: string): void {
  copyDebian(root, Object.values(podTools));
  chmodSync(join(root, 'tmp'), 0o1777);
  const places = ['usr/bin', 'usr/sbin', 'bin', 'sbin'];
  const has = (name: string): boolean => places.some((place) => existsSync(join(root, place, name)));
  mkdirSync(join(root, 'usr/local/bin'), { recursive: true });
  for (const [name, target] of Object.entries(alternatives)) {
    if (!has(name)) symlinkSync(target, join(root, 'usr/local/bin', name));
  }
  copyFileSync(wget, join(root, 'usr/local/bin/wget'));
  layOutBusybox(root, 'usr/local/bin', (applet) => !has(applet));
}

function layOutBusybox(root: string, place: string, isWanted: (applet: string) => boolean): void {
  mkdirSync(join(root, place), { recursive: true });
  mkdirSync(join(root, 'tmp'), { recursive: true });
  chmodSync(join(root, 'tmp'), 0o1777);
  copyFileSync('/bin/busybox', join(root, place, 'busybox'));
  const applets = execFileSync('/bin/busybox', ['--list'], { encoding: 'utf8' }).split('\n').filter(Boolean);
  for (const applet of applets) {
    const link = join(root, place, applet);
    if (isWanted(applet) && !existsSync(link)) symlinkSync(`/${place}/busybox`, link);
  }
}
