import { spawnSync } from 'node:child_process';
import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';

/**
 * Makes sure that commands are installed: `tools` maps each to its Debian package. Installs missing packages and says
 * so. Throws when that fails.
 */
export function installMissing(tools: Readonly<Record<string, string>>): void {
  const missing = Object.keys(tools).filter((command) => !onPath(command));
  if (missing.length === 0) return;
  const packages = [...new Set(missing.map((command) => tools[command] ?? command))];
  if (process.getuid?.() !== 0) {
    throw new Error(`${missing.join(', ')} missing: as root, run apt-get install ${packages.join(' ')}`);
  }
  console.log(`installing Debian packages: ${packages.join(' ')}`);
  aptGet('update', '-qq');
  // A machine that has just started may hold the package lock, because it updates itself.
  aptGet('install', '-y', '-qq', '--no-install-recommends', '-o', 'DPkg::Lock::Timeout=600', ...packages);
}

function aptGet(...args: readonly string[]): void {
  const { status, error } = spawnSync('apt-get', args, {
    stdio: 'inherit',
    env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' },
  });
  if (error) throw new Error(`apt-get cannot be run: ${error.message}`);
  if (status !== 0) throw new Error(`apt-get ${args.join(' ')} ended with status ${status}`);
}

function onPath(command: string): boolean {
  const directories = [...(process.env.PATH ?? '').split(delimiter), '/usr/sbin', '/sbin'];
  return directories.some((directory) => {
    try {
      accessSync(join(directory, command), constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}
