import { spawnSync } from 'node:child_process';
import { readFileSync, realpathSync } from 'node:fs';
import { join } from 'node:path';
import type { Product } from '../src/lib/product.ts';

/** For builds without the repository's .git, as in an image: the commit, with `+dirty` behind it if that is not all. */
export const commitVariable = 'KPT_COMMIT';

const utc = '--date=format-local:%Y-%m-%dT%H:%M:%SZ';

/** What a bundle of the sources under `root` says about itself. */
export function builtProduct(root: string, env: NodeJS.ProcessEnv = process.env): Product {
  const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { version: string };
  const [commit = '', mark] = (env[commitVariable] || commitOf(root) || 'unknown').split('+');
  const date = git(root, 'show', '--no-patch', '--format=%cd', utc, commit) ?? 'unknown';
  if (commit === 'unknown') return { version: manifest.version, commit, treeState: commit, date: commit };
  return { version: manifest.version, commit, treeState: mark === 'dirty' ? 'dirty' : 'clean', date };
}

/** The commit that is checked out, with `+dirty` if tracked files differ from it. Undefined if `root` is no repository. */
export function commitOf(root: string): string | undefined {
  // An unpacked package may be inside somebody else's repository.
  const top = git(root, 'rev-parse', '--show-toplevel');
  if (top === undefined || realpathSync(top) !== realpathSync(root)) return undefined;
  const commit = git(root, 'rev-parse', 'HEAD');
  const changes = git(root, 'status', '--porcelain', '--untracked-files=no');
  return commit && `${commit}${changes === '' ? '' : '+dirty'}`;
}

function git(root: string, ...args: readonly string[]): string | undefined {
  const env = { ...process.env, TZ: 'UTC' };
  const { status, stdout } = spawnSync('git', ['-C', root, ...args], { encoding: 'utf8', env });
  return status === 0 ? stdout.trim() : undefined;
}
