import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeSync } from 'node:fs';
import { text } from 'node:stream/consumers';
import type { Measurement } from '../report/measurement.ts';
import { listenerIP, nodeIP, refusingNetwork } from './cluster.ts';

/** Scripts write their results here; their standard output is for people. */
const resultsFd = 3;

/**
 * Runs a script in its own network namespace. The script reads its task with `taskOf` and returns its results with
 * `handBack`. Needs root.
 */
export async function inNamespace(script: string, task: readonly unknown[]): Promise<Measurement[]> {
  const setUp = [
    'ip link set lo up',
    ...[`${nodeIP}/32`, `${listenerIP}/32`].map((address) => `ip addr add ${address} dev lo`),
    `ip route add local ${refusingNetwork} dev lo`,
    `ip route add default dev lo src ${nodeIP}`,
    'exec "$0" "$@"',
  ];
  const args = ['-n', 'sh', '-c', setUp.join(' && '), process.execPath, script, JSON.stringify(task)];
  const child = spawn('unshare', args, { stdio: ['ignore', 'inherit', 'inherit', 'pipe'] });
  const results = child.stdio[resultsFd];
  if (!results || !('read' in results)) throw new Error('no pipe for results');
  const [[status, signal], output] = await Promise.all([once(child, 'close'), text(results)]);
  if (status !== 0) {
    const hint = process.getuid?.() === 0 ? '' : '; a network namespace needs root';
    throw new Error(`measuring ended with ${signal ?? `status ${status}`}${hint}`);
  }
  return JSON.parse(output) as Measurement[];
}

export function taskOf<T extends readonly unknown[]>(argv: readonly string[]): T {
  return JSON.parse(argv[2] ?? '[]');
}

/** Returns the results of a script that `inNamespace` runs. Call it once, at the end. */
export function handBack(measured: readonly Measurement[]): void {
  writeSync(resultsFd, JSON.stringify(measured));
}
