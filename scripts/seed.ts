import { spawnSync } from 'node:child_process';

/**
 * Gives all tests one seed for what they leave to chance: `KPT_SEED`, or else one that follows from the commit. So every
 * commit tries something new, and passes again where it passed once.
 */
export function shareSeed(root: string): string {
  const seed = process.env.KPT_SEED ?? seedOfCommit(root);
  process.env.KPT_SEED = seed;
  console.log(`KPT_SEED=${seed}`);
  return seed;
}

function seedOfCommit(root: string): string {
  const { status, stdout } = spawnSync('git', ['rev-parse', 'HEAD'], { cwd: root, encoding: 'utf8' });
  // Outside a repository there is no commit, and any seed will do.
  return String(status === 0 ? Number.parseInt(stdout.slice(0, 7), 16) : Math.floor(Math.random() * 2 ** 28));
}
