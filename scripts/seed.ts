import { spawnSync } from 'node:child_process';

/**
 * Gives all tests one random seed: `KPT_SEED`, or else a number derived from the commit. So every commit tries new
 * values, and a second run of the same commit repeats them.
 */
export function shareSeed(root: string): string {
  const seed = process.env.KPT_SEED ?? seedOfCommit(root);
  process.env.KPT_SEED = seed;
  console.log(`KPT_SEED=${seed}`);
  return seed;
}

function seedOfCommit(root: string): string {
  const { status, stdout } = spawnSync('git', ['rev-parse', 'HEAD'], { cwd: root, encoding: 'utf8' });
  // Outside a repository there is no commit: use a random seed.
  return String(status === 0 ? Number.parseInt(stdout.slice(0, 7), 16) : Math.floor(Math.random() * 2 ** 28));
}
