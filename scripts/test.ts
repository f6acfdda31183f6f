/**
 * Runs the tests. `npm run test:unit` (--unit): what needs neither root nor the network. `npm test`: types, lint,
 * unit tests, then the system tests, after installing the Debian packages that they need and that are missing, then
 * those on another kernel (scripts/test-vm.ts). Further arguments narrow the test files: `npm test -- test/contract`.
 */
import { spawnSync } from 'node:child_process';
import { globSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { installMissing } from './debian-packages.ts';
import { shareSeed } from './seed.ts';

const root = resolve(import.meta.dirname, '..');
const node = join(root, 'node_modules/.bin/node');

/** Commands that system tests call, and the Debian package that brings each. */
const tools = {
  ip: 'iproute2',
  nft: 'nftables',
  iptables: 'iptables',
  conntrack: 'conntrack',
  openssl: 'openssl',
  ping: 'iputils-ping',
  capsh: 'libcap2-bin',
  modprobe: 'kmod',
};

function main(args: readonly string[]): void {
  const wanted = args.filter((arg) => !arg.startsWith('--'));
  shareSeed(root);
  const unit = select(
    [
      'src/**/*.test.ts',
      'bench/**/*.test.ts',
      'test/*.test.ts',
      'test/{cluster,docs,plan,vm}/**/*.test.ts',
      'test/{iptables,ipvs}/{*-recorded,incremental,properties}.test.ts',
    ],
    wanted,
  );
  if (args.includes('--unit')) {
    runTests(unit, 2);
    return;
  }
  if (wanted.length === 0) run('npm', ['run', '--silent', 'check']);
  installMissing(tools);
  const system = select(['test/**/*.test.ts'], wanted).filter((file) => !unit.includes(file));
  runTests(unit, 2);
  // System tests share the machine's cores and kernel: one file at a time keeps them honest.
  runTests(system, 1);
  if (wanted.length > 0) return;
  for (const script of ['test:vm', 'test:vm:nftables']) run('npm', ['run', '--silent', script]);
}

function select(patterns: readonly string[], wanted: readonly string[]): string[] {
  const files = globSync([...patterns], { cwd: root }).sort();
  return wanted.length === 0 ? files : files.filter((file) => wanted.some((part) => file.startsWith(part)));
}

function runTests(files: readonly string[], concurrency: number): void {
  if (files.length === 0) return;
  const options = [`--test-concurrency=${concurrency}`, '--test-reporter=spec', '--import', './test/seed.ts'];
  run(node, ['--test', ...options, ...files]);
}

function run(command: string, args: readonly string[]): void {
  const { status, error } = spawnSync(command, args, { cwd: root, stdio: 'inherit' });
  if (error) throw error;
  if (status !== 0) process.exit(status ?? 1);
}

main(process.argv.slice(2));
