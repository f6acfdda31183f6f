import { cpus, release } from 'node:os';
import type { Kubectl } from './kubectl.ts';
import type { Machine } from './machine.ts';
import { succeed } from './processes.ts';

/** One line with the versions of everything that takes part in a result. */
export async function describeRun(commit: string, kubectl: Kubectl, machine: Machine): Promise<string> {
  const { serverVersion } = JSON.parse(await kubectl.run('version', '--output=json')) as {
    serverVersion: { gitVersion: string };
  };
  const containerd = versionIn(await machine.run('ctr', ['version']), /^Server:\s+Version:\s+(\S+)/m);
  const etcd = versionIn(await succeed('etcd', ['--version']), /^etcd Version: (\S+)/m);
  const coredns = versionIn(await succeed('coredns', ['-version']), /^CoreDNS-(\S+)/m);
  return [
    new Date().toISOString().slice(0, 16).replace('T', ' '),
    `kube-proxy-ts at commit ${commit.slice(0, 12)}`,
    `Kubernetes ${serverVersion.gitVersion}`,
    `etcd ${etcd}`,
    `CoreDNS ${coredns}`,
    `containerd ${containerd}`,
    `Linux ${release()}`,
    `${cpus().length} cores`,
  ].join(', ');
}

function versionIn(output: string, pattern: RegExp): string {
  return pattern.exec(output)?.[1] ?? 'of an unknown version';
}
