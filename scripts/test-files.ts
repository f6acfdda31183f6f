/** The test files of the project, and how they are run. */
import { spawnSync } from 'node:child_process';
import { globSync } from 'node:fs';
import { join, resolve } from 'node:path';

export const root = resolve(import.meta.dirname, '..');
const node = join(root, 'node_modules/.bin/node');

/** Commands that system tests call, and the Debian package of each. */
export const tools = {
  ip: 'iproute2',
  nft: 'nftables',
  iptables: 'iptables',
  conntrack: 'conntrack',
  openssl: 'openssl',
  ping: 'iputils-ping',
  capsh: 'libcap2-bin',
  modprobe: 'kmod',
};

/** Tests that need neither root nor a network. */
export function unitTests(): string[] {
  return glob([
    'src/**/*.test.ts',
    'bench/**/*.test.ts',
    'test/*.test.ts',
    'test/{changed,cluster,docs,plan,vm}/**/*.test.ts',
    'test/{iptables,ipvs}/{*-recorded,incremental,properties}.test.ts',
  ]);
}

/** All other tests: they start the program or use the kernel of this machine. */
export function systemTests(): string[] {
  const unit = new Set(unitTests());
  return glob(['test/**/*.test.ts']).filter((file) => !unit.has(file));
}

function glob(patterns: readonly string[]): string[] {
  return globSync(patterns, { cwd: root }).sort();
}

export function runUnitTests(files: readonly string[]): void {
  runTests(files, 2);
}

/** Runs one file at a time, because system tests share the machine's cores and kernel. */
export function runSystemTests(files: readonly string[]): void {
  runTests(files, 1);
}

function runTests(files: readonly string[], concurrency: number): void {
  if (files.length === 0) return;
  const options = [`--test-concurrency=${concurrency}`, '--test-reporter=spec', '--import', './test/seed.ts'];
  run(node, ['--test', ...options, ...files]);
}

/** Types, lint, format and the direction of imports. */
export function runChecks(): void {
  run('npm', ['run', '--silent', 'check']);
}

/** Runs a command with the output of this process; ends this process when it fails. */
export function run(command: string, args: readonly string[]): void {
  const { status, error } = spawnSync(command, args, { cwd: root, stdio: 'inherit' });
  if (error) throw error;
  if (status !== 0) process.exit(status ?? 1);
}
