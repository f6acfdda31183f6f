/** The test files of the project, and how they are run. */
import { spawn } from 'node:child_process';
import { globSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { createInterface } from 'node:readline';

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
  zsh: 'zsh',
  fish: 'fish',
  chromium: 'chromium',
};

/** Tests that need neither root nor a network. */
export function unitTests(): string[] {
  return glob([
    'src/**/*.test.ts',
    'bench/**/*.test.ts',
    'test/*.test.ts',
    'test/{changed,cluster,docs,plan,real-cluster,vm}/**/*.test.ts',
    'test/soak/model/*.test.ts',
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

/**
 * Runs test files, two at a time, and returns whether all passed. System tests wait more than they compute, each in
 * network namespaces of its own.
 */
export async function runTests(files: readonly string[]): Promise<boolean> {
  if (files.length === 0) return true;
  const options = ['--test-concurrency=2', '--test-reporter=spec', '--import', './test/seed.ts'];
  // Hundreds of short processes load the same modules: half of their time went into erasing types and compiling.
  const env = { NODE_COMPILE_CACHE: join(root, 'node_modules/.cache/tests') };
  return succeeds(node, ['--test', ...options, ...files], { env });
}

/** Runs test files in an emulated machine, or all of its lanes (test/vm/lane.ts); returns whether all passed. */
export async function runInMachine(wanted: readonly string[], prefix = ''): Promise<boolean> {
  const options = ['--disable-warning=ExperimentalWarning', join(root, 'scripts/test-vm.ts')];
  return wanted.length === 0 || succeeds(node, [...options, ...wanted], { prefix });
}

/** Checks types, lint, format and the direction of imports; returns whether nothing was found. */
export function runChecks(): Promise<boolean> {
  return succeeds('npm', ['run', '--silent', 'check']);
}

/** Bundles the program, so that tests do not start it from its sources hundreds of times. */
export function build(): Promise<boolean> {
  return succeeds(node, [join(root, 'scripts/build.ts')]);
}

interface HowToRun {
  readonly env?: NodeJS.ProcessEnv;
  /** Begins every line of output, to distinguish it from that of a command that runs at the same time. */
  readonly prefix?: string;
}

async function succeeds(
  command: string,
  args: readonly string[],
  { env, prefix = '' }: HowToRun = {},
): Promise<boolean> {
  const output = prefix === '' ? 'inherit' : 'pipe';
  const child = spawn(command, args, {
    cwd: root,
    stdio: ['ignore', output, output],
    env: { ...process.env, ...env },
  });
  for (const stream of [child.stdout, child.stderr]) {
    if (stream) createInterface({ input: stream }).on('line', (line) => console.log(`${prefix}${line}`));
  }
  return new Promise((resolve, reject) => {
    child.on('error', reject);
    child.on('close', (status) => resolve(status === 0));
  });
}
