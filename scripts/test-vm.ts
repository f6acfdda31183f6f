/**
 * Runs tests on Debian's stock kernel (6.1) in an emulated machine. That kernel is older than the kernel of most test
 * machines and has what those often lack: SCTP, IPVS, dummy devices. `npm run test:vm` tests ipvs mode, `npm run
 * test:vm:nftables` tests nftables mode; test/vm/lane.ts lists the test files. Needs root; installs missing Debian
 * packages. `KPT_VM=off` skips it, `KPT_CONTRACT=full` runs every story in every cluster.
 */
import { spawnSync } from 'node:child_process';
import { cpSync, globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { stripTypeScriptTypes } from 'node:module';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { messageOf } from '../src/lib/thrown.ts';
import { archivePath, copied, guestScript, reportPath, unpackScript } from '../test/vm/guest-script.ts';
import { contract, type Lane, lanes, limitSeconds, modules, pace, testTools } from '../test/vm/lane.ts';
import { readReport, render, succeeded } from '../test/vm/report.ts';
import { installMissing } from './debian-packages.ts';
import { shareSeed } from './seed.ts';

const root = resolve(import.meta.dirname, '..');
const machineTools = {
  'qemu-system-x86_64': 'qemu-system-x86',
  busybox: 'busybox-static',
  depmod: 'kmod',
  cpio: 'cpio',
};

function main(wanted: readonly string[]): void {
  if (process.env.KPT_VM === 'off') {
    console.log('emulated machine: not run, as KPT_VM=off asks for');
    return;
  }
  const files = selectLane(wanted);
  installMissing({ ...machineTools, ...testTools });
  const shared = mkdtempSync(join(tmpdir(), 'kpt-vm-'));
  try {
    prepare(shared, files);
    const status = runMachine(shared);
    const results = files.map((file) => readReport(file, readIfThere(join(shared, reportPath(file)))));
    console.log(`\nemulated machine:\n${render(results)}`);
    if (status !== 0) console.log(`the emulated machine ended with status ${status}`);
    process.exitCode = status === 0 && succeeded(results) ? 0 : 1;
  } finally {
    rmSync(shared, { recursive: true });
  }
}

/** The files of the lanes that the arguments name, and those whose names begin with an argument. */
function selectLane(wanted: readonly string[]): Lane {
  const all = Object.values(lanes).flat();
  const files = wanted.flatMap((name) =>
    Object.hasOwn(lanes, name) ? (lanes[name] ?? []) : all.filter((file) => file.startsWith(name)),
  );
  if (files.length > 0) return [...new Set(files)];
  const known = [...Object.keys(lanes), ...all].join('\n  ');
  throw new Error(`nothing matches ${JSON.stringify(wanted.join(' '))}; there are\n  ${known}`);
}

/** Does outside the machine what would take long inside: bundles the program, strips types from all other files. */
function prepare(shared: string, lane: Lane): void {
  const build = spawnSync(process.execPath, [join(root, 'scripts/build.ts')], { stdio: 'inherit' });
  if (build.status !== 0) throw new Error('the bundle could not be built');
  packProject(shared);
  mkdirSync(join(shared, 'reports'));
  writeFileSync(
    join(shared, 'tests.sh'),
    unpackScript(root) +
      guestScript({
        root,
        lane,
        pace,
        contract: process.env.KPT_CONTRACT ?? contract,
        seed: shareSeed(root),
      }),
  );
}

/** Packs what the machine has a copy of: the program, the tests, and the sources without types. */
function packProject(shared: string): void {
  const copy = join(shared, 'project');
  for (const folder of copied) cpSync(join(root, folder), join(copy, folder), { recursive: true });
  for (const file of globSync('{src,test}/**/*.ts', { cwd: copy })) {
    const path = join(copy, file);
    writeFileSync(path, stripTypeScriptTypes(readFileSync(path, 'utf8')));
  }
  const tar = spawnSync('tar', ['-cf', join(shared, archivePath), '-C', copy, ...copied], {
    stdio: 'inherit',
  });
  if (tar.status !== 0) throw new Error('the project could not be packed');
  rmSync(copy, { recursive: true });
}

function runMachine(shared: string): number {
  const args = ['-m', modules.join(' '), '-t', String(limitSeconds), '--', 'bash', '/vm-out/tests.sh'];
  const { status, error } = spawnSync(join(root, 'test/vm/vm-run'), args, {
    stdio: 'inherit',
    env: { ...process.env, OUT: shared },
  });
  if (error) throw error;
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
  main(process.argv.slice(2));
} catch (error) {
  console.error(`emulated machine: ${messageOf(error)}`);
  console.error('KPT_VM=off in the environment goes without it');
  process.exitCode = 1;
}
