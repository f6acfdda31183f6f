import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';
import { describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { paced } from './pace.ts';

const insideVariable = 'KPT_LAB_NAMESPACE';
const namePrefix = 'kpt-';
const namespacesDirectory = '/var/run/netns';

/** Runs a command to its end; throws with what it wrote when it fails. */
export function run(command: string, ...args: readonly string[]): string {
  return runWith('', command, args);
}

/** Runs a line of shell with the given input; returns its output, throws with what it wrote when it fails. */
export function sh(line: string, input = ''): string {
  return runWith(input, 'sh', ['-c', line]);
}

/** Runs many commands of `ip` in one process, which counts where processes take long to start. */
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

/** Whether a program can be started at all. */
export function hasProgram(name: string, ...args: readonly string[]): boolean {
  return spawnSync(name, args, { stdio: 'ignore' }).error === undefined;
}

/** Why namespaces cannot be used here; undefined when they can. */
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
 * Runs a module, with the output of this process, in a network namespace of its own, and gives its exit status. The
 * namespace, and all others whose name starts with its name, are removed at the end whatever happened.
 */
export function runInNamespace(moduleURL: string): number {
  const name = `${namePrefix}${process.pid}`;
  removeNamespaces(isAbandoned);
  run('ip', 'netns', 'add', name);
  try {
    run('ip', '-n', name, 'link', 'set', 'lo', 'up');
    const args = ['netns', 'exec', name, process.execPath, ...process.execArgv, fileURLToPath(moduleURL)];
    const env = { ...process.env, [insideVariable]: name };
    return spawnSync('ip', args, { stdio: 'inherit', env }).status ?? 1;
  } finally {
    removeNamespaces((namespace) => isPartOf(namespace, name));
  }
}

/**
 * Goes on with the calling test file inside a network namespace of its own: the file is started again there, and
 * this process ends with its status. Returns, with the name of the namespace, only inside.
 */
export function enterNamespace(moduleURL: string): string {
  return ownNamespace() ?? process.exit(runInNamespace(moduleURL));
}

/** A file that takes longer hangs. */
const LIMIT_MS = paced(300_000);

/** Defines tests that run in a network namespace of their own; where there can be none, a test that is skipped says why. */
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

/** Its process was killed before it could remove what it had made. */
function isAbandoned(namespace: string): boolean {
  const [pid = ''] = namespace.startsWith(namePrefix) ? namespace.slice(namePrefix.length).split('-') : [];
  return /^\d+$/.test(pid) && !existsSync(`/proc/${pid}`);
}

function isPartOf(namespace: string, name: string): boolean {
  return namespace === name || namespace.startsWith(`${name}-`);
}
