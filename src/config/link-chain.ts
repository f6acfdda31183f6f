import { lstatSync, readlinkSync, type Stats } from 'node:fs';
import { dirname, join } from 'node:path';

/** The kernel follows no more than this. */
const MAX_LINKS = 40;

/**
 * The directory entries that decide what a path leads to: every symbolic link on the way and the file at its end,
 * as names by directory. Where the way breaks off, the missing entry is the last. For a ConfigMap volume these are
 * `config.conf` and `..data` in the mount, and the file in the dated directory.
 */
export function linkChain(path: string): Map<string, Set<string>> {
  const chain = new Map<string, Set<string>>();
  const rest = (path.startsWith('/') ? path : `${process.cwd()}/${path}`).split('/');
  let directory = '/';
  let links = 0;
  while (rest.length > 0) {
    const name = rest.shift() ?? '';
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
    if (!stats?.isSymbolicLink() || ++links > MAX_LINKS) break;
    const target = readlinkSync(entry);
    if (target.startsWith('/')) directory = '/';
    rest.unshift(...target.split('/'));
  }
  return chain;
}

function lstat(path: string): Stats | undefined {
  try {
    return lstatSync(path, { throwIfNoEntry: false });
  } catch (error) {
    // A way that runs through a file or a closed directory ends there, just like one that does not exist.
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOTDIR' || code === 'EACCES') return undefined;
    throw error;
  }
}
