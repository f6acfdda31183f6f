import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { paced } from './pace.ts';

const insideVariable = 'KPT_LAB_NAMESPACE';
const namePrefix = 'kpt-';
const namespacesDirectory = '/var/run/netns';

/** Runs a command to its end. Throws an error with its output if it fails. */
export function run(command: string, ...args: readonly string[]): string {
  return runWith('', command, args);
}

/** Runs a line of shell with the given input and returns its output. Throws an error with its output if it fails. */
export function sh(line: string, input = ''): string {
  return runWith(input, 'sh', ['-c', line]);
}

/** Runs many commands of `ip` in one process: in an emulated machine processes take long to start. */
export function runBatch(options: readonly string[], commands: readonly string[]): void {
  runWith(commands.join('\n'), 'ip', [...options, '-batch', '-']);
}

function runWith(input: string, command: string, args: readonly string[]): string {
  const result = spawnSync(command, args, { encoding: 'utf8', input });
  if (result.error) throw result.error;
  if (result.status !== 0) {
    throw new Error(
      `${command} ${args.join(' ')}: status ${result.status}: ${result.stderr}${result.stdout}`,
    );
  }
  return result.stdout;
}

/** Whether a program can be started. */
export function hasProgram(name: string, ...args: readonly string[]): boolean {
  return spawnSync(name, args, { stdio: 'ignore' }).error === undefined;
}

/** The reason why namespaces cannot be used here; undefined when they can. */
export function labUnavailable(): string | undefined {
  if (process.platform !== 'linux') return 'needs Linux';
  if (process.getuid?.() !== 0) return 'needs root';
  if (!hasProgram('ip', '-V')) return 'needs the program ip (package iproute2)';
  return undefined;
}

/** The namespace that `runInNamespace` made for this process; undefined outside. */
export function ownNamespace(): string | undefined {
  return process.env[insideVariable];
}

/**
 * Runs a module in a new network namespace, with the output of this process, and returns its exit status. At the end it
 * always removes the namespace, and all namespaces with names that begin with its name.
 */
export function runInNamespace(moduleURL: string): number {
  const name = `${namePrefix}${process.pid}`;
  const lock = join(tmpdir(), `${name}.xtables-lock`);
  removeNamespaces(isAbandoned);
  run('ip', 'netns', 'add', name);
  try {
    run('ip', '-n', name, 'link', 'set', 'lo', 'up');
    const args = ['netns', 'exec', name, process.execPath, ...process.execArgv, fileURLToPath(moduleURL)];
    // Rules belong to a namespace, but the lock of iptables to the machine: tests must not wait for one another.
    const env = { ...process.env, [insideVariable]: name, XTABLES_LOCKFILE: lock };
    return spawnSync('ip', args, { stdio: 'inherit', env }).status ?? 1;
  } finally {
    removeNamespaces((namespace) => isPartOf(namespace, name));
    rmSync(lock, { force: true });
  }
}

/**
 * Runs the calling test file again in a new network namespace; this process then exits with its status. Inside the
 * namespace it returns the namespace's name.
 */
export function enterNamespace(moduleURL: string): string {
  return ownNamespace() ?? process.exit(runInNamespace(moduleURL));
}

/** A test file that takes longer than this hangs. */
const LIMIT_MS = paced(300_000);

/** Defines tests that run in a new network namespace. If none can be made, a skipped test gives the reason. */
export function inNamespace(moduleURL: string, define: () => void): void {
  const title = 'in a network namespace of its own';
  const skip = labUnavailable();
  if (skip !== undefined) {
    test(title, { skip }, () => {});
    return;
  }
  enterNamespace(moduleURL);
  describe(title, { timeout: LIMIT_MS }, define);
}

function removeNamespaces(isToGo: (namespace: string) => boolean): void {
  if (!existsSync(namespacesDirectory)) return;
  for (const namespace of readdirSync(namespacesDirectory).filter(isToGo)) {
    spawnSync('ip', ['netns', 'delete', namespace]);
  }
}

/** Whether the process that made the namespace was killed before it could remove it. */
function isAbandoned(namespace: string): boolean {
  const [pid = ''] = namespace.startsWith(namePrefix) ? namespace.slice(namePrefix.length).split('-') : [];
  return /^\d+$/.test(pid) && !existsSync(`/proc/${pid}`);
}

function isPartOf(namespace: string, name: string): boolean {
  return namespace === name || namespace.startsWith(`${name}-`);
}
