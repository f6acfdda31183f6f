import { cpus, release } from 'node:os';
import type { Kubectl } from './kubectl.ts';
import type { Machine } from './machine.ts';

/** One line with the versions of everything that takes part in a result. */
export async function describeRun(commit: string, kubectl: Kubectl, machine: Machine): Promise<string> {
  const { serverVersion } = JSON.parse(await kubectl.run('version', '--output=json')) as {
    serverVersion: { gitVersion: string };
  };
  const containerd = /^Server:\s+Version:\s+(\S+)/m.exec(await machine.run('ctr', ['version']))?.[1];
  return [
    new Date().toISOString().slice(0, 16).replace('T', ' '),
    `kube-proxy-ts at commit ${commit.slice(0, 12)}`,
    `Kubernetes ${serverVersion.gitVersion}`,
    `containerd ${containerd ?? 'of an unknown version'}`,
    `Linux ${release()}`,
    `${cpus().length} cores`,
  ].join(', ');
}
