import { type ChildProcess, spawn } from 'node:child_process';
import { join } from 'node:path';
import type { Folders } from './folders.ts';
import type { Order } from './inside.ts';

const inside = join(import.meta.dirname, 'inside.ts');

/**
 * Runs the cluster in network, mount and process namespaces of its own, and returns the exit status. When this process
 * ends, also by SIGKILL, the kernel ends the first process of the process namespace, and with it all others; mounts and
 * network devices go with their namespaces.
 */
export async function runInside(order: Order): Promise<number> {
  const namespaces = ['--mount', '--propagation', 'private', '--net', '--pid', '--fork', '--kill-child'];
  const args = [
    ...['--pdeathsig', 'KILL', 'unshare', ...namespaces, '--mount-proc'],
    ...[process.execPath, inside, JSON.stringify(order)],
  ];
  const child = spawn('setpriv', args, {
    stdio: ['ignore', 'inherit', 'inherit'],
    env: environment(order.folders),
  });
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
    process.on(signal, () => child.kill('SIGKILL'));
  return statusOf(child);
}

function environment({ bin }: Folders): NodeJS.ProcessEnv {
  return { ...process.env, PATH: `${bin}:${process.env.PATH ?? ''}:/usr/sbin:/sbin` };
}

function statusOf(child: ChildProcess): Promise<number> {
  return new Promise((resolve, reject) => {
    child.on('error', reject);
    child.on('close', (code, signal) => resolve(code ?? (signal === 'SIGKILL' ? 130 : 1)));
  });
}
