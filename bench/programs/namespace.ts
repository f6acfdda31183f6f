import { spawnSync } from 'node:child_process';
import { listenerIP, nodeIP, refusingNetwork } from './cluster.ts';

/** Runs a script, which finds its task by `taskOf`, with a network namespace of its own. Needs root. */
export function inNamespace(script: string, task: readonly unknown[]): void {
  const setUp = [
    'ip link set lo up',
    ...[`${nodeIP}/32`, `${listenerIP}/32`].map((address) => `ip addr add ${address} dev lo`),
    `ip route add local ${refusingNetwork} dev lo`,
    `ip route add default dev lo src ${nodeIP}`,
    'exec "$0" "$@"',
  ];
  const args = ['-n', 'sh', '-c', setUp.join(' && '), process.execPath, script, JSON.stringify(task)];
  const { status, error } = spawnSync('unshare', args, { stdio: 'inherit' });
  if (error) throw error;
  if (status !== 0) throw new Error(`unshare ended with status ${status}; it needs root`);
}

export function taskOf<T extends readonly unknown[]>(argv: readonly string[]): T {
  return JSON.parse(argv[2] ?? '[]');
}
