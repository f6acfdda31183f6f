/**
 * Runs the tests. `npm run test:unit` (--unit): what needs neither root nor the network. `npm test`: types, lint,
 * unit tests, then the system tests, after installing the Debian packages that they need and that are missing.
 * Further arguments narrow the test files: `npm test -- test/contract`.
 */
import { spawnSync } from 'node:child_process';
import { accessSync, constants, globSync } from 'node:fs';
import { delimiter, join, resolve } from 'node:path';

const root = resolve(import.meta.dirname, '..');
const binaries = join(root, 'node_modules/.bin');

/** Commands that system tests call, and the Debian package that brings each. */
const tools: Record<string, string> = {
  ip: 'iproute2',
  nft: 'nftables',
  iptables: 'iptables',
  conntrack: 'conntrack',
  openssl: 'openssl',
};

function main(args: readonly string[]): void {
  const unitOnly = args.includes('--unit');
  const wanted = args.filter((arg) => !arg.startsWith('--'));
  const unit = select(['src/**/*.test.ts', 'test/imports.test.ts'], wanted);
  if (unitOnly) {
    runTests(unit, 2);
    return;
  }
  if (wanted.length === 0) run('npm', ['run', '--silent', 'check']);
  installMissingTools();
  const system = select(['test/**/*.test.ts'], wanted).filter((file) => !unit.includes(file));
  runTests(unit, 2);
  // System tests share the machine's cores and kernel: one file at a time keeps them honest.
  runTests(system, 1);
}

function select(patterns: readonly string[], wanted: readonly string[]): string[] {
  const files = globSync([...patterns], { cwd: root }).sort();
  return wanted.length === 0 ? files : files.filter((file) => wanted.some((part) => file.startsWith(part)));
}

function runTests(files: readonly string[], concurrency: number): void {
  if (files.length === 0) return;
  run(join(binaries, 'node'), [
    '--test',
    `--test-concurrency=${concurrency}`,
    '--test-reporter=spec',
    ...files,
  ]);
}

function installMissingTools(): void {
  const missing = Object.keys(tools).filter((command) => !onPath(command));
  if (missing.length === 0) return;
  const packages = [...new Set(missing.map((command) => tools[command] ?? command))];
  if (process.getuid?.() !== 0) {
    fail(`system tests need ${missing.join(', ')}: as root, run apt-get install ${packages.join(' ')}`);
  }
  console.log(`installing Debian packages for the system tests: ${packages.join(' ')}`);
  const environment = { DEBIAN_FRONTEND: 'noninteractive' };
  run('apt-get', ['update', '-qq'], environment);
  run('apt-get', ['install', '-y', '-qq', '--no-install-recommends', ...packages], environment);
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

function run(command: string, args: readonly string[], environment: NodeJS.ProcessEnv = {}): void {
  const { status, error } = spawnSync(command, args, {
    cwd: root,
    stdio: 'inherit',
    env: { ...process.env, ...environment },
  });
  if (error) fail(`${command}: ${error.message}`);
  if (status !== 0) process.exit(status ?? 1);
}

function fail(message: string): never {
  console.error(`test: ${message}`);
  process.exit(1);
}

main(process.argv.slice(2));
