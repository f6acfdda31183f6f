/**
 * `npm run test:vm`: tests on Debian's stock kernel (6.1) in emulated machines. It is older than the kernel of most
 * test machines and has what those often lack: SCTP, IPVS, dummy devices. What runs where stands in test/vm/lane.ts.
 * Needs root; installs the Debian packages that are missing. `KPT_VM=off` goes without.
 */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { stripTypeScriptTypes } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { guestScript, reportPath } from '../test/vm/guest-script.ts';
import { contract, limitSeconds, machines, modules, pace, testTools } from '../test/vm/lane.ts';
import { type FileResult, readReport, render, succeeded } from '../test/vm/report.ts';
import { installMissing } from './debian-packages.ts';

const root = resolve(import.meta.dirname, '..');
const machineTools = {
  'qemu-system-x86_64': 'qemu-system-x86',
  busybox: 'busybox-static',
  depmod: 'kmod',
  cpio: 'cpio',
};

async function main(wanted: readonly string[]): Promise<void> {
  if (process.env.KPT_VM === 'off') {
    console.log('emulated machine: not run, as KPT_VM=off asks for');
    return;
  }
  const work = Object.entries(machines)
    .map(([name, patterns]) => ({ name, files: selectFiles(patterns, wanted) }))
    .filter(({ files }) => files.length > 0);
  if (work.length === 0) throw new Error(`nothing of the emulated machine matches ${wanted.join(' ')}`);
  installMissing({ ...machineTools, ...testTools });
  build();
  const outcomes = await Promise.all(work.map(({ name, files }) => runTests(name, files)));
  const results = outcomes.flatMap((outcome) => outcome.results);
  console.log(`\nemulated machine:\n${render(results)}`);
  for (const { name, status } of outcomes) {
    if (status !== 0) console.log(`the emulated machine for ${name} ended with status ${status}`);
  }
  process.exitCode = outcomes.every(({ status }) => status === 0) && succeeded(results) ? 0 : 1;
}

/** All that matches a line of the lane, in its order. A line that matches nothing is a mistake. */
function selectFiles(patterns: readonly string[], wanted: readonly string[]): string[] {
  const files = patterns.flatMap((pattern) => {
    const matching = globSync(pattern, { cwd: root }).sort();
    if (matching.length === 0) throw new Error(`test/vm/lane.ts: no file matches ${pattern}`);
    return matching;
  });
  return files.filter((file) => wanted.length === 0 || wanted.some((part) => file.startsWith(part)));
}

function build(): void {
  const { status } = spawnSync(process.execPath, [join(root, 'scripts/build.ts')], { stdio: 'inherit' });
  if (status !== 0) throw new Error('the bundle could not be built');
}

interface Outcome {
  readonly name: string;
  readonly status: number;
  readonly results: readonly FileResult[];
}

/** Runs test files in a machine of their own. */
async function runTests(name: string, files: readonly string[]): Promise<Outcome> {
  const shared = mkdtempSync(join(tmpdir(), 'kpt-vm-'));
  try {
    prepare(shared, files);
    const status = await runMachine(name, shared);
    const results = files.map((file) => readReport(file, readIfThere(join(shared, reportPath(file)))));
    return { name, status, results };
  } finally {
    rmSync(shared, { recursive: true });
  }
}

/** Does here what would take long inside: strips types. */
function prepare(shared: string, files: readonly string[]): void {
  for (const file of globSync(['src/**/*.ts', 'test/**/*.ts'], { cwd: root })) {
    const to = join(shared, 'stripped', file);
    mkdirSync(dirname(to), { recursive: true });
    writeFileSync(to, stripTypeScriptTypes(readFileSync(join(root, file), 'utf8')));
  }
  mkdirSync(join(shared, 'reports'));
  writeFileSync(join(shared, 'tests.sh'), guestScript({ root, files, pace, contract }));
}

/** What the machine prints is passed on with its name in front; resolves to its exit status. */
async function runMachine(name: string, shared: string): Promise<number> {
  const args = ['-m', modules.join(' '), '-t', String(limitSeconds), '--', 'bash', '/vm-out/tests.sh'];
  const machine = spawn(join(root, 'test/vm/vm-run'), args, {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { ...process.env, OUT: shared },
  });
  const ended = once(machine, 'close');
  for await (const line of createInterface({ input: machine.stdout })) console.log(`${name}| ${line}`);
  const [status] = (await ended) as [number | null];
  return status ?? 1;
}

function readIfThere(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return undefined;
  }
}

try {
  await main(process.argv.slice(2));
} catch (error) {
  console.error(`emulated machine: ${error instanceof Error ? error.message : error}`);
  console.error('KPT_VM=off in the environment goes without it');
  process.exitCode = 1;
}
