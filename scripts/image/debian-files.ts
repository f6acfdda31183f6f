import { execFileSync, spawnSync } from 'node:child_process';
import { lstatSync, mkdirSync, readlinkSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';

interface InstalledPackage {
  readonly name: string;
  readonly isEssential: boolean;
  readonly provides: readonly string[];
  /** Each entry lists alternatives. */
  readonly depends: readonly (readonly string[])[];
}

/** Packages of every Debian image besides the essential ones. */
const alwaysThere = ['apt'];
/** Slim images leave these files out, too. */
const leftOut = /^\/usr\/share\/(doc|man|info|locale|lintian)(\/|$)/;

/**
 * Makes a Debian root file system in a directory: the essential packages, the named ones and their dependencies, copied
 * file by file from this machine. Throws when this machine lacks a package. Does not run the packages' scripts.
 */
export function copyDebian(directory: string, packages: readonly string[]): void {
  mkdirSync(directory, { recursive: true });
  for (const name of ['bin', 'sbin', 'lib', 'lib64']) mergeIntoUsr(directory, name);
  const files = execFileSync('dpkg-query', ['--listfiles', ...closure(packages)], { encoding: 'utf8' });
  // A line that is not a path is about a diversion.
  const paths = [...new Set(files.split('\n'))].filter((path) => /^\/[^.]/.test(path) && !leftOut.test(path));
  const list = ['/etc/passwd', '/etc/group', ...paths].map((path) => path.slice(1)).join('\n');
  const archive = join(directory, '.files.tar');
  // A removed configuration file is still in the list.
  const options = [
    '--create',
    '--no-recursion',
    '--ignore-failed-read',
    '--files-from=-',
    `--file=${archive}`,
  ];
  const { status, stderr } = spawnSync('tar', ['--directory=/', ...options], {
    input: list,
    encoding: 'utf8',
  });
  if (status !== 0) throw new Error(`tar: ${stderr}`);
  execFileSync('tar', [
    '--extract',
    '--keep-directory-symlink',
    `--directory=${directory}`,
    `--file=${archive}`,
  ]);
  execFileSync('rm', [archive]);
  for (const name of ['proc', 'sys', 'dev', 'tmp', 'run'])
    mkdirSync(join(directory, name), { recursive: true });
}

/** Packages still have files in /lib and similar directories, which are links into /usr. */
function mergeIntoUsr(directory: string, name: string): void {
  if (!lstatSync(`/${name}`, { throwIfNoEntry: false })?.isSymbolicLink()) return;
  mkdirSync(join(directory, readlinkSync(`/${name}`)), { recursive: true });
  symlinkSync(readlinkSync(`/${name}`), join(directory, name));
}

function closure(wanted: readonly string[]): string[] {
  const installed = installedPackages();
  const byName = new Map(installed.flatMap((each) => each.provides.map((name) => [name, each] as const)));
  for (const each of installed) byName.set(each.name, each);
  const essential = installed.filter(({ isEssential }) => isEssential).map(({ name }) => name);
  const chosen = new Set<string>();
  const queue = [...essential, ...alwaysThere, ...wanted].map((name) => [name]);
  for (let names = queue.pop(); names; names = queue.pop()) {
    const found = names.flatMap((name) => byName.get(name) ?? [])[0];
    if (!found) throw new Error(`the Debian package ${names.join(' or ')} is not installed here`);
    if (chosen.has(found.name)) continue;
    chosen.add(found.name);
    queue.push(...found.depends.map((alternatives) => [...alternatives]));
  }
  return [...chosen].sort();
}

function installedPackages(): InstalledPackage[] {
  const fields = ['Package', 'Essential', 'Provides', 'Pre-Depends', 'Depends', 'db:Status-Abbrev'];
  const format = `${fields.map((field) => `\${${field}}`).join('\t')}\n`;
  const text = execFileSync('dpkg-query', ['--show', `--showformat=${format}`], { encoding: 'utf8' });
  return text.split('\n').flatMap((line) => {
    const [name = '', essential, provides = '', before = '', depends = '', status = ''] = line.split('\t');
    if (!status.startsWith('ii')) return [];
    return {
      name,
      isEssential: essential === 'yes',
      provides: relations(provides).flat(),
      depends: [...relations(before), ...relations(depends)],
    };
  });
}

/** `a (>= 1), b:any | c` → [[a], [b, c]] */
function relations(text: string): string[][] {
  const groups = text.split(',').filter((group) => group.trim() !== '');
  return groups.map((group) => group.split('|').map((name) => name.replace(/[(:].*/, '').trim()));
}
