import { type ChildProcess, spawn } from 'node:child_process';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { nodeAddress } from './addresses.ts';
import type { Kubectl } from './kubectl.ts';
import {
  type ClientOutcome,
  type LoadOrder,
  type LoadOutcome,
  sourcePortAt,
  sourcePorts,
} from './load-client.ts';
import type { Machine } from './machine.ts';
import { untilSuccessful } from './processes.ts';

const client = join(import.meta.dirname, 'load-client.ts');
const perSecond = 20;
const port = 80;
const nodePort = 30_080;

interface Pod {
  readonly spec: { readonly nodeName: string };
  readonly status: { readonly containerStatuses: readonly { readonly containerID: string }[] };
}

/** A web service with several pods, and a pod on every node to ask from. */
export class WebService {
  readonly #kubectl: Kubectl;
  readonly #machines: readonly Machine[];
  readonly #image: string;
  /** Commands that lead into the network of a pod, per machine. */
  #intoPods: readonly (readonly string[])[] = [];
  /** The first source port of the next load. The kernel keeps records of closed connections for two minutes. */
  #nextPort = sourcePorts.first;
  #probes = 0;

  constructor(kubectl: Kubectl, machines: readonly Machine[], agnhostImage: string) {
    this.#kubectl = kubectl;
    this.#machines = machines;
    this.#image = agnhostImage;
  }

  /** Creates it, unless that was done before. */
  async create(): Promise<void> {
    if (this.#intoPods.length > 0) return;
    await this.#kubectl.apply('load', [
      { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'load' } },
      this.#server(),
      this.#clients(),
      service('web', { type: 'NodePort', ports: [{ port, targetPort: 8080, nodePort }] }),
    ]);
    await this.#kubectl.run('--namespace=load', 'rollout', 'status', 'deployment/web', '--timeout=300s');
    await this.#kubectl.run('--namespace=load', 'rollout', 'status', 'daemonset/client', '--timeout=300s');
    this.#intoPods = await Promise.all(this.#machines.map((machine) => this.#intoPod(machine)));
  }

  /** Creates further Services of the same pods. */
  async createMore(count: number): Promise<void> {
    const names = Array.from({ length: count }, (_, i) => `more-${i + 1}`);
    const ports = [{ port, targetPort: 8080 }];
    await this.#kubectl.apply(
      'more',
      names.map((name) => service(name, { ports })),
    );
  }

  async restart(): Promise<void> {
    await this.#kubectl.run('--namespace=load', 'rollout', 'restart', 'deployment/web');
    await this.#kubectl.run('--namespace=load', 'rollout', 'status', 'deployment/web', '--timeout=600s');
  }

  /**
   * Makes connections from outside, from every node and from a pod on every node while `work` runs, and for some seconds
   * before and after it.
   */
  async during(work: () => Promise<void>): Promise<LoadOutcome> {
    const addresses = await this.#clusterIPs('web');
    const inside = addresses.map((host) => ({ host, port }));
    const outside = this.#machines.flatMap(({ node }) =>
      [nodeAddress(node).v4, nodeAddress(node).v6].map((host) => ({ host, port: nodePort })),
    );
    const start = (into: readonly string[], targets: LoadOrder['targets']): RunningClient =>
      startClient(into, { targets, perSecond, firstPort: this.#nextPort });
    const clients = [
      start([], outside),
      ...this.#machines.map((machine) => start(['nsenter', ...machine.enter('--net')], inside)),
      ...this.#intoPods.map((command) => start(command, inside)),
    ];
    let outcomes: ClientOutcome[];
    try {
      await sleep(5_000);
      await work();
      await sleep(5_000);
    } finally {
      outcomes = await Promise.all(clients.map((each) => each.finish()));
    }
    this.#nextPort = sourcePortAt(this.#nextPort, Math.max(...outcomes.map(({ portsUsed }) => portsUsed)));
    return {
      connections: outcomes.reduce((sum, { connections }) => sum + connections, 0),
      slowestMs: Math.max(...outcomes.map(({ slowestMs }) => slowestMs)),
      failures: outcomes.flatMap(({ failures }) => failures),
    };
  }

  /** Checks that every node learns of a new Service. */
  async assertChangesArrive(): Promise<void> {
    const name = `probe-${++this.#probes}`;
    await this.#kubectl.apply(name, [service(name, { ports: [{ port, targetPort: 8080 }] })]);
    const [address = ''] = await this.#clusterIPs(name);
    for (const machine of this.#machines)
      await untilSuccessful(`the new Service on ${machine.name}`, 60, () =>
        machine.run('curl', ['--silent', '--fail', '--max-time', '2', `http://${address}:${port}/hostname`]),
      );
  }

  async #clusterIPs(name: string): Promise<string[]> {
    const found = await this.#kubectl.get<{ spec: { clusterIPs: string[] } }>(
      '--namespace=load',
      'service',
      name,
    );
    return found.spec.clusterIPs;
  }

  async #intoPod(machine: Machine): Promise<string[]> {
    const { items } = await this.#kubectl.get<{ items: Pod[] }>(
      ...['--namespace=load', 'pods', '--selector=app=client'],
      `--field-selector=spec.nodeName=${machine.name}`,
    );
    const id = items[0]?.status.containerStatuses[0]?.containerID.replace(/^.*:\/\//, '') ?? '';
    const tasks = await machine.run('ctr', ['--namespace', 'k8s.io', 'tasks', 'list']);
    const pid = new RegExp(`^${id}\\s+(\\d+)`, 'm').exec(tasks)?.[1];
    if (id === '' || pid === undefined) throw new Error(`no client pod runs on ${machine.name}`);
    return ['nsenter', ...machine.enter('--mount', '--pid'), 'nsenter', '--target', pid, '--net'];
  }

  #server(): object {
    // A pod that ends serves on for a while, as a well-behaved web server does.
    const container = {
      name: 'web',
      image: this.#image,
      imagePullPolicy: 'IfNotPresent',
      args: ['netexec', '--http-port=8080', '--delay-shutdown=15'],
      readinessProbe: { httpGet: { path: '/hostname', port: 8080 }, periodSeconds: 1 },
    };
    const spread = {
      maxSkew: 1,
      topologyKey: 'kubernetes.io/hostname',
      whenUnsatisfiable: 'ScheduleAnyway',
      labelSelector: { matchLabels: { app: 'web' } },
    };
    return workload('apps/v1', 'Deployment', 'web', [container], {
      replicas: 6,
      pod: { terminationGracePeriodSeconds: 30, topologySpreadConstraints: [spread] },
    });
  }

  #clients(): object {
    const container = {
      name: 'client',
      image: this.#image,
      imagePullPolicy: 'IfNotPresent',
      args: ['pause'],
    };
    return workload('apps/v1', 'DaemonSet', 'client', [container], {
      pod: { tolerations: [{ operator: 'Exists' }] },
    });
  }
}

function service(name: string, spec: object): object {
  return {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name, namespace: 'load' },
    spec: { selector: { app: 'web' }, ipFamilyPolicy: 'PreferDualStack', ...spec },
  };
}

function workload(
  apiVersion: string,
  kind: string,
  app: string,
  containers: readonly object[],
  { replicas, pod }: { readonly replicas?: number; readonly pod: object },
): object {
  const template = { metadata: { labels: { app } }, spec: { containers, ...pod } };
  const spec = { selector: { matchLabels: { app } }, template, ...(replicas !== undefined && { replicas }) };
  return { apiVersion, kind, metadata: { name: app, namespace: 'load' }, spec };
}

interface RunningClient {
  finish(): Promise<ClientOutcome>;
}

function startClient(into: readonly string[], order: LoadOrder): RunningClient {
  const [command = '', ...args] = [...into, process.execPath, client, JSON.stringify(order)];
  const child: ChildProcess = spawn(command, args, { stdio: ['pipe', 'pipe', 'inherit'] });
  let output = '';
  child.stdout?.setEncoding('utf8').on('data', (text: string) => {
    output += text;
  });
  const ended = new Promise<ClientOutcome>((resolve, reject) => {
    child.on('error', reject);
    child.on('close', (code) => {
      if (code === 0) resolve(JSON.parse(output) as ClientOutcome);
      else reject(new Error(`a client of the load ended with ${code}`));
    });
  });
  // Reported by finish().
  ended.catch(() => undefined);
  return {
    finish: () => {
      child.stdin?.end();
      return ended;
    },
  };
}
