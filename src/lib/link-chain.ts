import { lstatSync, readlinkSync, type Stats } from 'node:fs';
import { dirname, join } from 'node:path';
import { hasCode } from './thrown.ts';

/** The kernel follows no more than this. */
const MAX_LINKS = 40;

/** By directory, the names of the entries in it that count. */
export type LinkChain = Map<string, Set<string> | 'all'>;

/**
 * The directory entries that decide what a path leads to: every symbolic link on the way, and at its end the file, or
 * all entries of the directory. Where the way breaks off, the missing entry is the last. For a file in a ConfigMap
 * volume these are `config.conf` and `..data` in the mount, and the file in the dated directory.
 */
export function linkChain(path: string): LinkChain {
  const chain = new Map<string, Set<string>>();
  const rest = (path.startsWith('/') ? path : `${process.cwd()}/${path}`).split('/');
  let directory = '/';
  let links = 0;
  for (let name = rest.shift(); name !== undefined; name = rest.shift()) {
    if (name === '' || name === '.') continue;
    if (name === '..') {
      directory = dirname(directory);
      continue;
    }
    const entry = join(directory, name);
    const stats = lstat(entry);
    if (stats?.isDirectory()) {
      directory = entry;
      continue;
    }
    chain.set(directory, (chain.get(directory) ?? new Set()).add(name));
    if (!stats?.isSymbolicLink() || ++links > MAX_LINKS) return chain;
    const target = readlinkSync(entry);
    if (target.startsWith('/')) directory = '/';
    rest.unshift(...target.split('/'));
  }
  return new Map<string, Set<string> | 'all'>(chain).set(directory, 'all');
}

function lstat(path: string): Stats | undefined {
  try {
    return lstatSync(path, { throwIfNoEntry: false });
  } catch (error) {
    // A way that runs through a file or a closed directory ends there, just like one that does not exist.
    if (hasCode(error, 'ENOTDIR') || hasCode(error, 'EACCES')) return undefined;
    throw error;
  }
}
