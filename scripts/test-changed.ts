/**
 * Runs the tests that a change can reach (test/changed/), and prints the reasons: `npm run test:changed`, or with the
 * commit to compare with, `npm run test:changed -- HEAD~3`. Uncommitted and new files are part of the change. `--list`
 * only lists the tests.
 */
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Base, chooseBase } from '../test/changed/base.ts';
import { referencesOf } from '../test/changed/references.ts';
import { type Reason, type Selection, selectTests } from '../test/changed/selection.ts';
import { table } from '../test/changed/table.ts';
import { lanes } from '../test/vm/lane.ts';
import { installMissing } from './debian-packages.ts';
import { shareSeed } from './seed.ts';
import {
  build,
  root,
  runChecks,
  runInMachine,
  runTests,
  systemTests,
  tools,
  unitTests,
} from './test-files.ts';

async function main(args: readonly string[]): Promise<boolean> {
  const base = findBase(args.find((arg) => !arg.startsWith('--')));
  const changed = changedSince(base.commit);
  const selection = select(changed);
  const inMachine = Object.values(lanes)
    .flat()
    .filter((file) => selection.tests.includes(file));
  describe(base, selection, inMachine);
  if (args.includes('--list') || changed.length === 0) return true;
  if (!(await runChecks())) return false;
  shareSeed(root);
  const system = systemTests().filter((file) => selection.tests.includes(file));
  if (system.length > 0) {
    installMissing(tools);
    if (!(await build())) return false;
  }
  const passed = await runTests(selection.tests);
  return (await runInMachine(inMachine)) && passed;
}

function select(changed: readonly string[]): Selection {
  const files = lines('ls-files', '--cached', '--others', '--exclude-standard');
  const known = new Map<string, readonly string[]>();
  const references = (file: string): readonly string[] => {
    const found = known.get(file) ?? referencesOf(file, readSource(file));
    known.set(file, found);
    return found;
  };
  const tests = [...unitTests(), ...systemTests()];
  return selectTests({ files, tests, references, table }, changed);
}

/** The text of a source file; empty for a folder or a missing file. */
function readSource(file: string): string {
  if (!/\.[jt]s$/.test(file)) return '';
  try {
    return readFileSync(join(root, file), 'utf8');
  } catch {
    return '';
  }
}

function findBase(wanted: string | undefined): Base {
  const [head = ''] = lines('rev-parse', 'HEAD');
  const forks = ['main', 'origin/main'].map((main) => git('merge-base', 'HEAD', main));
  const fork = forks.find(({ status }) => status === 0)?.stdout.trim();
  const isDirty = lines('status', '--porcelain').length > 0;
  return chooseBase({ head, isDirty, ...(fork !== undefined && { fork }) }, wanted);
}

/** Files that differ from a commit, new ones and deleted ones included. */
function changedSince(commit: string): string[] {
  const differing = lines('diff', '--name-only', '--no-renames', commit);
  const untracked = lines('ls-files', '--others', '--exclude-standard');
  return [...new Set([...differing, ...untracked])].sort();
}

function describe(base: Base, { tests, reasons }: Selection, inMachine: readonly string[]): void {
  console.log(`compared with ${base.commit} (${base.why}): ${counted(reasons.length, 'file')} changed`);
  for (const reason of reasons) console.log(`  ${reason.changed}: ${explain(reason)}`);
  console.log(`${counted(tests.length, 'test file')} can be reached`);
  for (const test of tests) console.log(`  ${test}`);
  if (inMachine.length === 0) return;
  console.log(`of these, ${inMachine.length} also run in an emulated machine, unless KPT_VM=off:`);
  for (const test of inMachine) console.log(`  ${test}`);
}

function explain({ importedBy, row, isUnknown }: Reason): string {
  if (isUnknown) return 'no test is known to depend on it, so everything runs';
  const parts = [];
  if (importedBy > 0) parts.push(`referred to by ${counted(importedBy, 'test file')}`);
  if (row?.[1] === 'everything') parts.push(`everything depends on ${row[0]}`);
  else if (row && row[1].length > 0) parts.push(`${row[0]} is tested by ${[...new Set(row[1])].join(', ')}`);
  return parts.length > 0 ? parts.join('; ') : 'no test depends on it';
}

function counted(count: number, what: string): string {
  return `${count} ${what}${count === 1 ? '' : 's'}`;
}

function lines(...args: readonly string[]): string[] {
  const { status, stdout, stderr } = git(...args);
  if (status !== 0) throw new Error(`git ${args.join(' ')}: ${stderr.trim()}`);
  return stdout.split('\n').filter((line) => line !== '');
}

function git(...args: readonly string[]) {
  return spawnSync('git', args, { cwd: root, encoding: 'utf8', maxBuffer: 64 << 20 });
}

process.exitCode = (await main(process.argv.slice(2))) ? 0 : 1;
