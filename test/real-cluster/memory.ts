import { setTimeout as sleep } from 'node:timers/promises';
import { proxies, type WhichProxy } from './arguments.ts';
import type { Kubectl } from './kubectl.ts';
import type { Stage } from './scenarios/scenario.ts';

const services = 20;
/** The kubelet looks at containers every ten to fifteen seconds; a program that has just started still settles. */
const settlingMs = 60_000;

/** Memory of one proxy's container, in bytes, as the kubelet counts it. */
export interface ContainerMemory {
  /** What the kubelet acts on: all that is charged to the control group, without idle file pages. */
  readonly workingSetBytes: number;
  readonly rssBytes: number;
}

/** The part of the kubelet's /stats/summary that is read. */
interface Summary {
  readonly pods: readonly {
    readonly podRef: { readonly namespace: string; readonly name: string };
    readonly containers?: readonly { readonly name: string; readonly memory?: Partial<ContainerMemory> }[];
  }[];
}

export type MemoryPerProxy = ReadonlyMap<WhichProxy, readonly ContainerMemory[]>;

/**
 * Measures upstream's proxy and ours with the same Services. The kernel charges a page of a file to the control group that
 * reads it first, so the files of the images are in nobody's memory when a proxy starts. The proxy of the run, which runs
 * before and afterwards, is the second: the files of a running program cannot be forgotten.
 */
export async function measureMemory(stage: Stage): Promise<MemoryPerProxy> {
  const { proxy, web, kubectl, machines, mode, which: deployed } = stage;
  await web.create();
  await web.createMore(services);
  const measured = new Map<WhichProxy, readonly ContainerMemory[]>();
  for (const which of [...proxies.filter((each) => each !== deployed), deployed]) {
    if (which === 'upstream' && mode === 'userspace') continue;
    await Promise.all(machines.map((machine) => machine.forgetImageFiles()));
    await proxy.deploy({ which, mode });
    await sleep(settlingMs);
    measured.set(which, await Promise.all(machines.map(({ name }) => readMemory(kubectl, name))));
  }
  return measured;
}

async function readMemory(kubectl: Kubectl, node: string): Promise<ContainerMemory> {
  return memoryIn(await kubectl.run('get', '--raw', `/api/v1/nodes/${node}/proxy/stats/summary`));
}

/** Finds the container of kube-proxy in the kubelet's summary. Throws when it has none, or no figures of it. */
export function memoryIn(summary: string): ContainerMemory {
  const { pods } = JSON.parse(summary) as Summary;
  const { workingSetBytes, rssBytes } =
    pods
      .filter(({ podRef }) => podRef.namespace === 'kube-system' && podRef.name.startsWith('kube-proxy-'))
      .flatMap(({ containers }) => containers ?? [])
      .find(({ name }) => name === 'kube-proxy')?.memory ?? {};
  if (workingSetBytes === undefined || rssBytes === undefined)
    throw new Error('the kubelet has no figures of kube-proxy');
  return { workingSetBytes, rssBytes };
}

/** A table in Markdown with the smallest and largest figures of the nodes. */
export function renderMemory(measured: MemoryPerProxy, mode: string): string {
  return [
    `| memory, ${mode} mode, ${services} Services | working set | resident |`,
    '|---|---|---|',
    ...[...measured].map(([which, nodes]) => {
      const workingSets = nodes.map(({ workingSetBytes }) => workingSetBytes);
      return `| ${which} | ${range(workingSets)} | ${range(nodes.map(({ rssBytes }) => rssBytes))} |`;
    }),
  ].join('\n');
}

function range(bytes: readonly number[]): string {
  const [least, most] = [Math.min(...bytes), Math.max(...bytes)].map((each) => Math.round(each / 1e6));
  return least === most ? `${least} MB` : `${least} to ${most} MB`;
}
